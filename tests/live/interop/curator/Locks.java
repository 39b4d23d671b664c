// SPDX-License-Identifier: Apache-2.0

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderLatchListener;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.leader.Participant;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.nodes.GroupMember;
import org.apache.curator.framework.recipes.shared.SharedCount;

/** The kinds of locks, and the arguments of each after its client. */
class Locks {
    /** A lock; a kind of locks overrides what it supports. */
    static class Lock {
        String acquire(long ms) throws Exception {
            throw new UnsupportedOperationException();
        }

        void release() throws Exception {
            throw new UnsupportedOperationException();
        }

        boolean holds() throws Exception {
            throw new UnsupportedOperationException();
        }

        void downgrade() throws Exception {
            throw new UnsupportedOperationException();
        }

        String nodes() throws Exception {
            throw new UnsupportedOperationException();
        }
    }

    private static class Plain extends Lock {
        private final InterProcessLock lock;

        Plain(InterProcessLock lock) {
            this.lock = lock;
        }

        @Override
        String acquire(long ms) throws Exception {
            return lock.acquire(ms, TimeUnit.MILLISECONDS) ? "held" : "missed";
        }

        @Override
        void release() throws Exception {
            lock.release();
        }

        @Override
        boolean holds() {
            return lock.isAcquiredInThisProcess();
        }
    }

    private static class Mutex extends Plain {
        private final InterProcessMutex mutex;

        Mutex(InterProcessMutex mutex) {
            super(mutex);
            this.mutex = mutex;
        }

        @Override
        String nodes() throws Exception {
            return String.join(",", mutex.getParticipantNodes());
        }
    }

    /** Prints "NAME revoked". Curator drops the listener at each release. */
    private static class Revocable extends Plain {
        private final InterProcessMutex mutex;
        private final String name;

        Revocable(String name, InterProcessMutex mutex) {
            super(mutex);
            this.mutex = mutex;
            this.name = name;
        }

        @Override
        String acquire(long ms) throws Exception {
            mutex.makeRevocable(unused -> Contender.print(name, "revoked"));
            return super.acquire(ms);
        }
    }

    /** Acquires single locks one after the other, with one deadline. */
    private static class Nested extends Lock {
        private final List<InterProcessMutex> mutexes = new ArrayList<>();
        private int held; // the first so many mutexes are held

        Nested(CuratorFramework c, List<String> paths) {
            for (String path : paths)
                mutexes.add(new InterProcessMutex(c, path));
        }

        @Override
        String acquire(long ms) throws Exception {
            long deadline = System.nanoTime() + ms * 1_000_000;
            boolean allHeld = false;

            try {
                allHeld = acquireAll(deadline);
            } finally {
                if (!allHeld)
                    release();
            }
            return allHeld ? "held" : "missed";
        }

        private boolean acquireAll(long deadline) throws Exception {
            for (held = 0; held < mutexes.size(); held++) {
                long left = Math.max(deadline - System.nanoTime(), 0);

                if (!mutexes.get(held).acquire(left, TimeUnit.NANOSECONDS))
                    return false;
            }
            return true;
        }

        @Override
        void release() throws Exception {
            Exception failure = null;

            while (held > 0) {
                try {
                    mutexes.get(--held).release();
                } catch (Exception e) {
                    failure = e;
                }
            }
            if (failure != null)
                throw failure;
        }
    }

    /** A leader selector: the leader holds. acquire() waits without a timeout. */
    private static class Selector extends Lock {
        private final LeaderSelector selector;
        private final AtomicBoolean wanted = new AtomicBoolean();
        /** acquire() waits for it, until this client is the leader. */
        private final Semaphore granted = new Semaphore(0);
        /** takeLeadership() waits for it: its return ends the leadership. */
        private volatile Semaphore released;
        private boolean started;

        Selector(CuratorFramework c, String path, String id) {
            selector = new LeaderSelector(c, path,
                    new LeaderSelectorListenerAdapter() {
                @Override
                public void takeLeadership(CuratorFramework unused)
                        throws Exception {
                    Semaphore end = new Semaphore(0);

                    if (!wanted.getAndSet(false))
                        return; // the selector was queued twice
                    released = end;
                    granted.release();
                    end.acquire();
                }
            });
            if (!id.isEmpty())
                selector.setId(id);
        }

        @Override
        String acquire(long ms) throws Exception {
            wanted.set(true);
            if (!started)
                selector.start();
            started = true;
            do
                selector.requeue(); // no effect if it is queued already
            while (!granted.tryAcquire(20, TimeUnit.MILLISECONDS));
            return "held";
        }

        @Override
        void release() {
            released.release();
        }

        @Override
        String nodes() throws Exception {
            return describe(selector.getParticipants());
        }
    }

    private static String describe(Collection<Participant> participants) {
        List<String> texts = new ArrayList<>();

        for (Participant p : participants)
            texts.add(p.getId() + (p.isLeader() ? "=leader" : "=candidate"));
        return String.join(",", texts);
    }

    /** A leader latch; the leader holds. Prints "NAME leader" and "NAME
     *  notleader". A release closes the latch. */
    private static class Latch extends Lock {
        private final CuratorFramework client;
        private final String name;
        private final String path;
        private final String id;
        private LeaderLatch latch;

        Latch(String name, CuratorFramework client, String path, String id) {
            this.name = name;
            this.client = client;
            this.path = path;
            this.id = id;
        }

        private void start() throws Exception {
            latch = new LeaderLatch(client, path, id);
            latch.addListener(new LeaderLatchListener() {
                @Override
                public void isLeader() {
                    Contender.print(name, "leader");
                }

                @Override
                public void notLeader() {
                    Contender.print(name, "notleader");
                }
            });
            latch.start();
        }

        @Override
        String acquire(long ms) throws Exception {
            if (latch == null)
                start();
            if (latch.await(ms, TimeUnit.MILLISECONDS))
                return "held";
            release();
            return "missed";
        }

        @Override
        void release() throws Exception {
            LeaderLatch old = latch;

            latch = null;
            old.close();
        }

        @Override
        boolean holds() {
            return latch != null && latch.hasLeadership();
        }

        @Override
        String nodes() throws Exception {
            return describe(latch.getParticipants());
        }
    }

    /** A member of a group, which is in the group while it "holds". */
    private static class Member extends Lock {
        private final GroupMember member;

        Member(CuratorFramework c, String path, String id, String payload) {
            member = new GroupMember(c, path, id,
                    payload.getBytes(StandardCharsets.UTF_8));
        }

        @Override
        String acquire(long ms) {
            member.start();
            return "held";
        }

        @Override
        void release() {
            member.close();
        }

        @Override
        String nodes() {
            List<String> texts = new ArrayList<>();

            for (Map.Entry<String, byte[]> e
                    : new TreeMap<>(member.getCurrentMembers()).entrySet())
                texts.add(e.getKey() + "="
                        + new String(e.getValue(), StandardCharsets.UTF_8));
            return String.join(",", texts);
        }
    }

    private static class Permits extends Lock {
        private final InterProcessSemaphoreV2 semaphore;
        private final int take;
        private Collection<Lease> leases;

        Permits(InterProcessSemaphoreV2 semaphore, int take) {
            this.semaphore = semaphore;
            this.take = take;
        }

        @Override
        String acquire(long ms) throws Exception {
            leases = semaphore.acquire(take, ms, TimeUnit.MILLISECONDS);
            return leases == null ? "missed" : "held";
        }

        @Override
        void release() throws Exception {
            semaphore.returnAll(leases);
        }
    }

    private static Map<String, Lock> mapOfOne(String name, Lock lock) {
        return Collections.singletonMap(name, lock);
    }

    private static Map<String, Lock> sides(String name, CuratorFramework c,
            String path) {
        InterProcessReadWriteLock rw = new InterProcessReadWriteLock(c, path);
        Map<String, Lock> both = new LinkedHashMap<>();

        both.put(name + ".read", new Plain(rw.readLock()));
        both.put(name + ".write", new Plain(rw.writeLock()));
        return both;
    }

    /** Read and write side as in tutorials. */
    private static Map<String, Lock> tutorialSides(String name, String connect,
            String path) {
        Map<String, Lock> both = new LinkedHashMap<>();

        both.put(name + ".read", new Tutorial(name, connect, path, "r-"));
        both.put(name + ".write", new Tutorial(name, connect, path, "w-"));
        return both;
    }

    /** Semaphores: PATH PERMITS TAKE, or PATH COUNTPATH TAKE, where the node at
     *  COUNTPATH holds the number of permits. */
    private static Lock semaphore(CuratorFramework c, String[] words)
            throws Exception {
        int take = Integer.parseInt(words[2]);

        if (!words[1].startsWith("/"))
            return new Permits(new InterProcessSemaphoreV2(c, words[0],
                        Integer.parseInt(words[1])), take);
        SharedCount count = new SharedCount(c, words[1], 1);

        count.start();
        return new Permits(new InterProcessSemaphoreV2(c, words[0], count),
                take);
    }

    static Map<String, Lock> make(String kind, String name, CuratorFramework c,
            String[] words) throws Exception {
        String path = words[0];
        List<String> paths = Arrays.asList(path.split(","));
        String id = words.length > 1 ? words[1] : "";
        String connect =
            c.getZookeeperClient().getCurrentConnectionString();

        switch (kind) {
        case "mutex":
            return mapOfOne(name, new Mutex(new InterProcessMutex(c, path)));
        case "revocable":
            return mapOfOne(name,
                    new Revocable(name, new InterProcessMutex(c, path)));
        case "selector":
            return mapOfOne(name, new Selector(c, path, id));
        case "member":
            return mapOfOne(name, new Member(c, path, id, words[2]));
        case "latch":
            return mapOfOne(name, new Latch(name, c, path, id));
        case "rwlock":
            return sides(name, c, path);
        case "semaphore":
            return mapOfOne(name, semaphore(c, words));
        case "semaphoremutex":
            return mapOfOne(name,
                    new Plain(new InterProcessSemaphoreMutex(c, path)));
        case "multilock":
            return mapOfOne(name,
                    new Plain(new InterProcessMultiLock(c, paths)));
        case "nested":
            return mapOfOne(name, new Nested(c, paths));
        case "downgrader":
            return mapOfOne(name, new Downgrader(name, connect, path));
        case "tutorial": // with the prefix of the nodes
            return mapOfOne(name, new Tutorial(name, connect, path, id));
        case "tutorial-async":
            return mapOfOne(name,
                    new Tutorial.InCallbacks(name, connect, path, id));
        case "tutorial-rwlock":
            return tutorialSides(name, connect, path);
        default:
            throw new IllegalArgumentException(kind);
        }
    }
}
