// SPDX-License-Identifier: Apache-2.0

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;

/**
 * A lock with ZooKeeper's client and a session of its own. After an error it
 * closes the session and makes another.
 */
abstract class PlainLock extends Locks.Lock {
    private static final int TIMEOUT_MS = 8000;
    private static final int DIGITS = 10;

    private final String name;
    private final String connect;
    protected final String dir;
    protected ZooKeeper zk;
    protected String node; // the own node; null: there is none

    /** `name` is that of the lock in lines about its session. */
    PlainLock(String name, String connect, String dir) {
        this.name = name;
        this.connect = connect;
        this.dir = dir;
    }

    /** Creates the own node, and gives whether the lock was granted in time. */
    abstract boolean createAndWait(long ms) throws Exception;

    static String number(String child) {
        return child.substring(child.length() - DIGITS);
    }

    static String nameOf(String path) {
        return path.substring(path.lastIndexOf('/') + 1);
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
    protected void closeSession() throws Exception {
        if (zk != null)
            zk.close();
        zk = null;
        node = null;
    }

    protected void createNode(String child, byte[] data, CreateMode mode)
            throws Exception {
        node = zk.create(dir + "/" + child, data, ZooDefs.Ids.OPEN_ACL_UNSAFE,
                mode);
    }

    @Override
    String acquire(long ms) throws Exception {
        try {
            openSession();
            if (createAndWait(ms))
                return "held";
            release();
            return "missed";
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
