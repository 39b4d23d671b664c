// SPDX-License-Identifier: Apache-2.0

import java.util.Comparator;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;

/**
 * A writer that downgrades to a reader as Curator's do from 5.5 on: it creates
 * the read node with the number of the write node, and then deletes the write
 * node.
 */
class Downgrader extends PlainLock {
    private static final byte[] NO_DATA = new byte[0];

    Downgrader(String name, String connect, String dir) {
        super(name, connect, dir);
    }

    /** The direct predecessor, or null. */
    private String directPredecessor() throws Exception {
        List<String> children = zk.getChildren(dir, false);
        String ownName = nameOf(node);

        if (!children.contains(ownName))
            throw new KeeperException.NoNodeException(node);
        return children.stream()
            .filter(child -> number(child).compareTo(number(ownName)) < 0)
            .max(Comparator.comparing(PlainLock::number)).orElse(null);
    }

    @Override
    boolean createAndWait(long ms) throws Exception {
        long deadline = System.nanoTime() + ms * 1_000_000;
        String predecessor;

        createNode("_c_" + UUID.randomUUID() + "-__WRIT__", NO_DATA,
                CreateMode.EPHEMERAL_SEQUENTIAL);
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

    @Override
    void downgrade() throws Exception {
        String writer = node;

        try {
            createNode("_c_" + UUID.randomUUID() + "-__READ__" + number(writer),
                    NO_DATA, CreateMode.EPHEMERAL);
            zk.delete(writer, -1);
        } catch (Exception e) {
            closeSession();
            throw e;
        }
    }
}
