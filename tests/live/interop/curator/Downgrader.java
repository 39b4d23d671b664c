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

    private void open() throws Exception {
        if (zk != null)
            return;
        CountDownLatch there = new CountDownLatch(1);

        zk = new ZooKeeper(connect, TIMEOUT_MS, event -> {
            boolean is = event.getState() == KeeperState.SyncConnected;

            Contender.say(name, is ? "connected" : "suspended");
            if (is)
                there.countDown();
        });
        there.await(60, TimeUnit.SECONDS);
    }

    /** Closes the session, which deletes its nodes. */
    private void end() throws Exception {
        if (zk != null)
            zk.close();
        zk = null;
        node = null;
    }

    /** The direct predecessor, or null. */
    private String pred() throws Exception {
        List<String> children = zk.getChildren(dir, false);
        String own = node.substring(dir.length() + 1);

        if (!children.contains(own))
            throw new KeeperException.NoNodeException(node);
        return children.stream()
            .filter(child -> number(child).compareTo(number(own)) < 0)
            .max(Comparator.comparing(Downgrader::number)).orElse(null);
    }

    private boolean waitUntil(long end) throws Exception {
        for (String pred = pred(); pred != null; pred = pred()) {
            CountDownLatch gone = new CountDownLatch(1);

            try {
                zk.getData(dir + "/" + pred, event -> gone.countDown(), null);
            } catch (KeeperException.NoNodeException e) {
                continue;
            }
            if (!gone.await(end - System.nanoTime(), TimeUnit.NANOSECONDS))
                return false;
        }
        return true;
    }

    private void make(String child, CreateMode mode) throws Exception {
        node = zk.create(dir + "/" + child, new byte[0],
                ZooDefs.Ids.OPEN_ACL_UNSAFE, mode);
    }

    @Override
    String acquire(long ms) throws Exception {
        try {
            open();
            make("_c_" + UUID.randomUUID() + "-__WRIT__",
                    CreateMode.EPHEMERAL_SEQUENTIAL);
            if (waitUntil(System.nanoTime() + ms * 1_000_000))
                return "held";
            release();
            return "missed";
        } catch (Exception e) {
            end();
            throw e;
        }
    }

    @Override
    void downgrade() throws Exception {
        String writer = node;

        try {
            make("_c_" + UUID.randomUUID() + "-__READ__" + number(writer),
                    CreateMode.EPHEMERAL);
            zk.delete(writer, -1);
        } catch (Exception e) {
            end();
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
            end();
            throw e;
        }
    }
}
