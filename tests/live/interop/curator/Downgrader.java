// SPDX-License-Identifier: Apache-2.0

import java.util.Comparator;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;

/**
 * A writer that downgrades to a reader as Curator's do from 5.5 on: it creates
 * the read node with the number of the write node, and then deletes the write
 * node. It uses ZooKeeper's client; after an error it closes its session and
 * makes another.
 */
class Downgrader extends Locks.Lock {
    private static final int TIMEOUT_MS = 8000;
    private static final int DIGITS = 10;

    private final String name;
    private final String connect;
    private final String dir;
    private ZooKeeper zk;
    private String node;

    Downgrader(String name, String connect, String dir) {
        this.name = name;
        this.connect = connect;
        this.dir = dir;
    }

    private static String number(String child) {
        return child.substring(child.length() - DIGITS);
    }

    private void openSession() throws Exception {
        if (zk != null)
            return;
        CountDownLatch connected = new CountDownLatch(1);

        zk = new ZooKeeper(connect, TIMEOUT_MS, event -> {
            boolean isConnected =
                event.getState() == KeeperState.SyncConnected;

            Contender.print(name, isConnected ? "connected" : "suspended");
            if (isConnected)
                connected.countDown();
        });
        connected.await(60, TimeUnit.SECONDS);
    }

    /** Closes the session, which deletes its nodes. */
    private void closeSession() throws Exception {
        if (zk != null)
            zk.close();
        zk = null;
        node = null;
    }

    /** The direct predecessor, or null. */
    private String directPredecessor() throws Exception {
        List<String> children = zk.getChildren(dir, false);
        String ownName = node.substring(dir.length() + 1);

        if (!children.contains(ownName))
            throw new KeeperException.NoNodeException(node);
        return children.stream()
            .filter(child -> number(child).compareTo(number(ownName)) < 0)
            .max(Comparator.comparing(Downgrader::number)).orElse(null);
    }

    /** Gives whether the lock was granted before the deadline. */
    private boolean waitForGrant(long deadline) throws Exception {
        String predecessor;

        while ((predecessor = directPredecessor()) != null) {
            CountDownLatch deleted = new CountDownLatch(1);

            try {
                zk.getData(dir + "/" + predecessor,
                        event -> deleted.countDown(), null);
            } catch (KeeperException.NoNodeException e) {
                continue;
            }
            if (!deleted.await(deadline - System.nanoTime(),
                        TimeUnit.NANOSECONDS))
                return false;
        }
        return true;
    }

    private void createNode(String child, CreateMode mode) throws Exception {
        node = zk.create(dir + "/" + child, new byte[0],
                ZooDefs.Ids.OPEN_ACL_UNSAFE, mode);
    }

    @Override
    String acquire(long ms) throws Exception {
        try {
            openSession();
            createNode("_c_" + UUID.randomUUID() + "-__WRIT__",
                    CreateMode.EPHEMERAL_SEQUENTIAL);
            if (waitForGrant(System.nanoTime() + ms * 1_000_000))
                return "held";
            release();
            return "missed";
        } catch (Exception e) {
            closeSession();
            throw e;
        }
    }

    @Override
    void downgrade() throws Exception {
        String writer = node;

        try {
            createNode("_c_" + UUID.randomUUID() + "-__READ__" + number(writer),
                    CreateMode.EPHEMERAL);
            zk.delete(writer, -1);
        } catch (Exception e) {
            closeSession();
            throw e;
        }
    }

    @Override
    void release() throws Exception {
        try {
            if (node != null)
                zk.delete(node, -1);
            node = null;
        } catch (Exception e) {
            closeSession();
            throw e;
        }
    }
}
