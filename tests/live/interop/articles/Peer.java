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
    private static String own;

    private interface Lock {
        /** The name of the own node; null after ms. */
        String acquire(String mark, long ms) throws Exception;
    }

    /** The node to wait for, or null if there is none: the last node before our
     *  own that excludes us, in the order of the sequence numbers. */
    private static String before(List<String> names, String mark) {
        String last = null;

        Collections.sort(names, (a, b) -> number(a).compareTo(number(b)));
        for (String name : names) {
            if (name.equals(own))
                return last;
            if (!mark.equals("r-") || name.startsWith("w-"))
                last = name;
        }
        throw new IllegalStateException(own + " is gone");
    }

    private static String number(String name) {
        return name.substring(name.length() - 10);
    }

    private static byte[] data(String mark) {
        if (mark.isEmpty())
            return "0".getBytes(StandardCharsets.UTF_8);
        if (mark.equals("lock"))
            return Thread.currentThread().getName()
                    .getBytes(StandardCharsets.UTF_8);
        return null;
    }

    private static String nameOf(String path) {
        return path.substring(path.lastIndexOf('/') + 1);
    }

    // ---- blocking

    private static String acquire(String mark, long ms) throws Exception {
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(ms);

        own = nameOf(zk.create(dir + "/" + mark, data(mark),
                ZooDefs.Ids.OPEN_ACL_UNSAFE,
                CreateMode.EPHEMERAL_SEQUENTIAL));
        for (;;) {
            String pred = before(zk.getChildren(dir, false), mark);

            if (pred == null)
                return own;
            CountDownLatch gone = new CountDownLatch(1);
            Watcher watcher = event -> gone.countDown();

            if (zk.exists(dir + "/" + pred, watcher) == null)
                continue;
            if (!gone.await(end - System.nanoTime(), TimeUnit.NANOSECONDS)) {
                zk.delete(dir + "/" + own, -1);
                return null;
            }
        }
    }

    // ---- in callbacks

    private static void fail(CompletableFuture<String> end, int rc) {
        end.completeExceptionally(
                KeeperException.create(KeeperException.Code.get(rc)));
    }

    private static void look(String mark, CompletableFuture<String> end) {
        zk.getChildren(dir, false, (rc, path, ctx, names) -> {
            if (rc != 0) {
                fail(end, rc);
                return;
            }
            String pred = before(names, mark);

            if (pred == null)
                end.complete(own);
            else
                watch(mark, pred, end);
        }, null);
    }

    private static void watch(String mark, String pred,
            CompletableFuture<String> end) {
        Watcher watcher = event -> {
            if (event.getType() != Watcher.Event.EventType.None)
                look(mark, end);
        };

        zk.exists(dir + "/" + pred, watcher, (rc, path, ctx, stat) -> {
            if (rc == KeeperException.Code.NONODE.intValue())
                look(mark, end);
            else if (rc != 0)
                fail(end, rc);
        }, null);
    }

    private static String acquireAsync(String mark, long ms) throws Exception {
        CompletableFuture<String> end = new CompletableFuture<>();
        CompletableFuture<String> made = new CompletableFuture<>();

        zk.create(dir + "/" + mark, data(mark), ZooDefs.Ids.OPEN_ACL_UNSAFE,
                CreateMode.EPHEMERAL_SEQUENTIAL, (rc, path, ctx, name) -> {
                    if (rc != 0) {
                        fail(made, rc);
                        fail(end, rc);
                        return;
                    }
                    own = nameOf(name);
                    made.complete(own);
                    look(mark, end);
                }, null);
        try {
            return end.get(ms, TimeUnit.MILLISECONDS);
        } catch (TimeoutException e) {
            made.get();
            zk.delete(dir + "/" + own, -1);
            return null;
        }
    }

    // ---- main

    private static String obey(Lock lock, String prefix, String[] words)
            throws Exception {
        if (words[0].equals("release")) {
            zk.delete(dir + "/" + own, -1);
            return "released";
        }
        String mark = words[0].equals("read") ? "r-"
                : words[0].equals("write") ? "w-" : prefix;
        String node = lock.acquire(mark, Long.parseLong(words[1]));

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
            System.out.println(obey(lock, prefix, line.split(" ")));
        zk.close();
    }
}
