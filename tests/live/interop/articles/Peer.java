// SPDX-License-Identifier: Apache-2.0

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;

/**
 * Locks as in tutorials for ZooKeeper's Java client, for layouts.py: Peer CONNECT
 * DIR KIND [PREFIX]. KIND is
 *
 *     lock      blocking: create, list, sort, wait for the predecessor, repeat
 *     async     the same in callbacks
 *     shared    with r- and w-: a reader waits for the nearest writer before it,
 *               a writer for the node before it
 *
 * Executes commands from standard input, and replies to each with one line:
 *
 *     acquire MS    held NODE, or missed; "read" or "write" in front of MS for
 *                   a shared lock
 *     release       released
 */
public class Peer {
    private static ZooKeeper zk;
    private static String dir;
    private static String ownNode;

    private interface Lock {
        /** Gives the name of the own node, or null if ms have passed. */
        String acquire(String prefix, long ms) throws Exception;
    }

    /** The nearest node that excludes this contender and has a smaller number;
     *  null if there is none. */
    private static String directPredecessor(List<String> names,
            String prefix) {
        String nearest = null;

        Collections.sort(names, (a, b) -> number(a).compareTo(number(b)));
        for (String name : names) {
            if (name.equals(ownNode))
                return nearest;
            // Only writers exclude a reader.
            if (!prefix.equals("r-") || name.startsWith("w-"))
                nearest = name;
        }
        throw new IllegalStateException(ownNode + " was deleted");
    }

    private static String number(String name) {
        return name.substring(name.length() - 10);
    }

    /** The data of the tutorial's node. */
    private static byte[] data(String prefix) {
        if (prefix.isEmpty())
            return "0".getBytes(StandardCharsets.UTF_8);
        if (prefix.equals("lock"))
            return Thread.currentThread().getName()
                    .getBytes(StandardCharsets.UTF_8);
        return null;
    }

    private static String nameOf(String path) {
        return path.substring(path.lastIndexOf('/') + 1);
    }

    // ---- blocking

    private static String acquire(String prefix, long ms) throws Exception {
        long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(ms);

        ownNode = nameOf(zk.create(dir + "/" + prefix, data(prefix),
                ZooDefs.Ids.OPEN_ACL_UNSAFE,
                CreateMode.EPHEMERAL_SEQUENTIAL));
        for (;;) {
            String predecessor =
                directPredecessor(zk.getChildren(dir, false), prefix);

            if (predecessor == null)
                return ownNode;
            CountDownLatch deleted = new CountDownLatch(1);
            Watcher watcher = event -> deleted.countDown();

            if (zk.exists(dir + "/" + predecessor, watcher) == null)
                continue;
            if (!deleted.await(deadline - System.nanoTime(),
                        TimeUnit.NANOSECONDS)) {
                zk.delete(dir + "/" + ownNode, -1);
                return null;
            }
        }
    }

    // ---- in callbacks

    private static void fail(CompletableFuture<String> grant, int rc) {
        grant.completeExceptionally(
                KeeperException.create(KeeperException.Code.get(rc)));
    }

    private static void listQueue(String prefix,
            CompletableFuture<String> grant) {
        zk.getChildren(dir, false, (rc, path, ctx, names) -> {
            if (rc != 0) {
                fail(grant, rc);
                return;
            }
            String predecessor = directPredecessor(names, prefix);

            if (predecessor == null)
                grant.complete(ownNode);
            else
                watchPredecessor(prefix, predecessor, grant);
        }, null);
    }

    private static void watchPredecessor(String prefix, String predecessor,
            CompletableFuture<String> grant) {
        Watcher watcher = event -> {
            if (event.getType() != Watcher.Event.EventType.None)
                listQueue(prefix, grant);
        };

        zk.exists(dir + "/" + predecessor, watcher, (rc, path, ctx, stat) -> {
            if (rc == KeeperException.Code.NONODE.intValue())
                listQueue(prefix, grant);
            else if (rc != 0)
                fail(grant, rc);
        }, null);
    }

    private static String acquireAsync(String prefix, long ms)
            throws Exception {
        CompletableFuture<String> grant = new CompletableFuture<>();
        CompletableFuture<String> created = new CompletableFuture<>();

        zk.create(dir + "/" + prefix, data(prefix), ZooDefs.Ids.OPEN_ACL_UNSAFE,
                CreateMode.EPHEMERAL_SEQUENTIAL, (rc, path, ctx, name) -> {
                    if (rc != 0) {
                        fail(created, rc);
                        fail(grant, rc);
                        return;
                    }
                    ownNode = nameOf(name);
                    created.complete(ownNode);
                    listQueue(prefix, grant);
                }, null);
        try {
            return grant.get(ms, TimeUnit.MILLISECONDS);
        } catch (TimeoutException e) {
            created.get(); // wait until the node exists
            zk.delete(dir + "/" + ownNode, -1);
            return null;
        }
    }

    // ---- main

    private static String execute(Lock lock, String prefix, String[] words)
            throws Exception {
        if (words[0].equals("release")) {
            zk.delete(dir + "/" + ownNode, -1);
            return "released";
        }
        if (words[0].equals("read"))
            prefix = "r-";
        if (words[0].equals("write"))
            prefix = "w-";
        String node = lock.acquire(prefix, Long.parseLong(words[1]));

        return node == null ? "missed" : "held " + node;
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(
                new InputStreamReader(System.in, StandardCharsets.UTF_8));
        CountDownLatch connected = new CountDownLatch(1);
        String prefix = args.length > 3 ? args[3] : "";
        Lock lock = args[2].equals("async") ? Peer::acquireAsync
                : Peer::acquire;

        zk = new ZooKeeper(args[0], 8000, (WatchedEvent event) -> {
            if (event.getState() == Watcher.Event.KeeperState.SyncConnected)
                connected.countDown();
        });
        connected.await();
        dir = args[1];
        try {
            zk.create(dir, null, ZooDefs.Ids.OPEN_ACL_UNSAFE,
                    CreateMode.PERSISTENT);
        } catch (KeeperException.NodeExistsException e) {
            // another client has created it
        }
        System.out.println("ready");
        for (String line; (line = in.readLine()) != null;)
            System.out.println(execute(lock, prefix, line.split(" ")));
        zk.close();
    }
}
