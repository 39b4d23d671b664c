// SPDX-License-Identifier: Apache-2.0

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.Revoker;
import org.apache.curator.retry.RetryNTimes;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;

/**
 * Curator's clients and locks, commanded by curator.py through lines of standard
 * input:
 *
 *     TAG VERB NAME [WORD...]
 *
 * Each gets a reply "TAG RESULT..." when it is done. Events of a client or a lock
 * are lines "NAME WORD...". Clients and locks are made by
 *
 *     client NAME CONNECT MS           with this session timeout
 *     mutex NAME CLIENT PATH           other kinds: see Locks.java
 *
 * The other verbs are
 *
 *     acquire LOCK MS     held, missed, or failed WHY
 *     release LOCK        released, or failed WHY
 *     holds LOCK          true or false, as the lock reports
 *     nodes LOCK          the contender nodes of a mutex; of a latch or a
 *                         selector, "ID=leader" or "ID=candidate" of each;
 *                         of a member of a group, "ID=PAYLOAD" of each
 *     downgrade LOCK      ok: a writer has been downgraded to a reader
 *     revoke CLIENT NODE  ok: the holder was asked to release
 *     put CLIENT PATH TEXT, get CLIENT PATH
 *                         "null" stands for null, "empty" for no bytes
 *     session CLIENT      its id, in hex
 *     close CLIENT        ok
 */
public class Contender {
    private static final Map<String, CuratorFramework> clients =
        new ConcurrentHashMap<>();
    private static final Map<String, Locks.Lock> locks =
        new ConcurrentHashMap<>();
    /** Curator's owners are threads: each lock has one. */
    private static final Map<String, ExecutorService> threads =
        new ConcurrentHashMap<>();

    static synchronized void print(String... words) {
        System.out.println(String.join(" ", words));
    }

    private static CuratorFramework client(String name, String connect,
            int sessionTimeoutMs) throws Exception {
        CuratorFramework c = CuratorFrameworkFactory.newClient(connect,
                sessionTimeoutMs, sessionTimeoutMs / 2,
                new RetryNTimes(400, 50));

        c.getConnectionStateListenable().addListener(
                (unused, state) -> print(name, state.name().toLowerCase()));
        c.start();
        c.blockUntilConnected();
        return c;
    }

    private static String put(ZooKeeper zk, String path, String text)
            throws Exception {
        byte[] data = text.equals("null") ? null
            : text.equals("empty") ? new byte[0]
            : text.getBytes(StandardCharsets.UTF_8);

        zk.create(path, data, ZooDefs.Ids.OPEN_ACL_UNSAFE,
                CreateMode.PERSISTENT);
        return "ok";
    }

    private static String get(ZooKeeper zk, String path) throws Exception {
        byte[] data = zk.getData(path, false, null);

        return data == null ? "null"
            : data.length == 0 ? "empty"
            : new String(data, StandardCharsets.UTF_8);
    }

    private static String executeForLock(Locks.Lock lock, String[] words)
            throws Exception {
        switch (words[0]) {
        case "acquire":
            return lock.acquire(Long.parseLong(words[2]));
        case "release":
            lock.release();
            return "released";
        case "holds":
            return String.valueOf(lock.holds());
        case "nodes":
            return lock.nodes();
        case "downgrade":
            lock.downgrade();
            return "ok";
        default:
            throw new IllegalArgumentException(words[0]);
        }
    }

    private static String executeForClient(CuratorFramework c, String[] words)
            throws Exception {
        switch (words[0]) {
        case "revoke":
            Revoker.attemptRevoke(c, words[2]);
            return "ok";
        case "session":
            return Long.toHexString(
                    c.getZookeeperClient().getZooKeeper().getSessionId());
        case "put":
            return put(c.getZookeeperClient().getZooKeeper(), words[2],
                    words[3]);
        case "get":
            return get(c.getZookeeperClient().getZooKeeper(), words[2]);
        case "close":
            c.close();
            return "ok";
        default:
            throw new IllegalArgumentException(words[0]);
        }
    }

    private static String execute(String[] words) throws Exception {
        String name = words[1];

        if (locks.containsKey(name))
            return executeForLock(locks.get(name), words);
        if (clients.containsKey(name))
            return executeForClient(clients.get(name), words);
        if (words.length < 4)
            throw new IllegalArgumentException("no such object: " + name);
        if (words[0].equals("client"))
            clients.put(name, client(name, words[2],
                        Integer.parseInt(words[3])));
        else
            locks.putAll(Locks.make(words[0], name, clients.get(words[2]),
                        Arrays.copyOfRange(words, 3, words.length)));
        return "ok";
    }

    private static void executeAndReply(String tag, String[] words) {
        try {
            print(tag, execute(words));
        } catch (Exception e) {
            print(tag, "failed", e.toString().replace('\n', ' '));
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(
                new InputStreamReader(System.in, StandardCharsets.UTF_8));
        String line;

        while ((line = in.readLine()) != null) {
            String[] words = line.split(" ");
            String tag = words[0];
            String[] rest = Arrays.copyOfRange(words, 1, words.length);
            // Both sides of a read-write lock have the same owner. The nodes are
            // read while the owner waits.
            String owner = rest[0].equals("nodes") ? ""
                : rest[1].split("\\.")[0];

            threads.computeIfAbsent(owner,
                    unused -> Executors.newSingleThreadExecutor())
                .execute(() -> executeAndReply(tag, rest));
        }
        for (CuratorFramework c : clients.values())
            c.close();
        System.exit(0);
    }
}
