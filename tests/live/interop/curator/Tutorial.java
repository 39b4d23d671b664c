// SPDX-License-Identifier: Apache-2.0

import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooDefs;

/**
 * A lock as in tutorials for ZooKeeper's Java client: create, list, sort, wait
 * for the predecessor, repeat. The prefix of its nodes is "r-" for a reader, which
 * waits for the nearest writer before it, and "w-" for a writer.
 */
class Tutorial extends PlainLock {
    protected final String prefix;

    Tutorial(String name, String connect, String dir, String prefix) {
        super(name, connect, dir);
        this.prefix = prefix;
    }

    /** The nearest node that excludes this one and has a smaller number; null if
     *  there is none. */
    protected String directPredecessor(List<String> names) {
        String nearest = null;

        Collections.sort(names, (a, b) -> number(a).compareTo(number(b)));
        for (String name : names) {
            if (name.equals(nameOf(node)))
                return nearest;
            // Only writers exclude a reader.
            if (!prefix.equals("r-") || name.startsWith("w-"))
                nearest = name;
        }
        throw new IllegalStateException(node + " was deleted");
    }

    /** The data of the tutorial's node. */
    protected byte[] data() {
        if (prefix.isEmpty())
            return "0".getBytes(StandardCharsets.UTF_8);
        if (prefix.equals("lock"))
            return Thread.currentThread().getName()
                    .getBytes(StandardCharsets.UTF_8);
        return null;
    }

    @Override
    boolean createAndWait(long ms) throws Exception {
        long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(ms);

        createNode(prefix, data(), CreateMode.EPHEMERAL_SEQUENTIAL);
        for (;;) {
            String predecessor = directPredecessor(zk.getChildren(dir, false));

            if (predecessor == null)
                return true;
            CountDownLatch deleted = new CountDownLatch(1);
            Watcher watcher = event -> deleted.countDown();

            if (zk.exists(dir + "/" + predecessor, watcher) == null)
                continue;
            if (!deleted.await(deadline - System.nanoTime(),
                        TimeUnit.NANOSECONDS))
                return false;
        }
    }

    /** The same in callbacks. */
    static class InCallbacks extends Tutorial {
        InCallbacks(String name, String connect, String dir, String prefix) {
            super(name, connect, dir, prefix);
        }

        private static void fail(CompletableFuture<?> result, int rc) {
            result.completeExceptionally(
                    KeeperException.create(KeeperException.Code.get(rc)));
        }

        private void listQueue(CompletableFuture<Boolean> grant) {
            zk.getChildren(dir, false, (rc, path, ctx, names) -> {
                if (rc != 0) {
                    fail(grant, rc);
                    return;
                }
                String predecessor = directPredecessor(names);

                if (predecessor == null)
                    grant.complete(true);
                else
                    watchPredecessor(predecessor, grant);
            }, null);
        }

        private void watchPredecessor(String predecessor,
                CompletableFuture<Boolean> grant) {
            Watcher watcher = event -> {
                if (event.getType() != Watcher.Event.EventType.None)
                    listQueue(grant);
            };

            zk.exists(dir + "/" + predecessor, watcher,
                    (rc, path, ctx, stat) -> {
                if (rc == KeeperException.Code.NONODE.intValue())
                    listQueue(grant);
                else if (rc != 0)
                    fail(grant, rc);
            }, null);
        }

        @Override
        boolean createAndWait(long ms) throws Exception {
            CompletableFuture<Boolean> grant = new CompletableFuture<>();
            CompletableFuture<String> created = new CompletableFuture<>();

            zk.create(dir + "/" + prefix, data(),
                    ZooDefs.Ids.OPEN_ACL_UNSAFE,
                    CreateMode.EPHEMERAL_SEQUENTIAL,
                    (rc, path, ctx, name) -> {
                if (rc != 0) {
                    fail(created, rc);
                    fail(grant, rc);
                    return;
                }
                node = name;
                created.complete(name);
                listQueue(grant);
            }, null);
            try {
                return grant.get(ms, TimeUnit.MILLISECONDS);
            } catch (TimeoutException e) {
                created.get(); // wait until the node exists
                return false;
            }
        }
    }
}
