// SPDX-License-Identifier: Apache-2.0

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryOneTime;

/**
 * Contenders for one InterProcessMutex of Curator, as in `latchkey-bench
 * lock-contended`, whose line of figures it prints:
 *
 *     Contended HOST:PORT N each=TURNS hold=MICROSECONDS mode=sessions|shared
 *
 * Half of the turns are done before, so that the code is compiled.
 */
public class Contended {
    private static String[] words;
    private static final List<Double> handoffs = new ArrayList<>();
    private static long released;  // of System.nanoTime(); 0: not yet

    private static String option(String key) {
        for (String word : words) {
            if (word.startsWith(key + "=")) {
                return word.substring(key.length() + 1);
            }
        }
        return "";
    }

    private static CuratorFramework connect(String hosts) throws Exception {
        CuratorFramework client =
            CuratorFrameworkFactory.newClient(hosts, 30000, 15000, new RetryOneTime(100));
        client.start();
        client.blockUntilConnected();
        return client;
    }

    /** Only the holder calls these two. */
    private static synchronized void granted() {
        if (released != 0) {
            handoffs.add((System.nanoTime() - released) / 1e3);
        }
    }

    private static synchronized void leaves() {
        released = System.nanoTime();
    }

    private static void contend(InterProcessMutex mutex, int turns, int hold) {
        try {
            for (; turns > 0; turns--) {
                mutex.acquire();
                granted();
                if (hold > 0) {
                    Thread.sleep(hold / 1000, hold % 1000 * 1000);
                }
                leaves();
                mutex.release();
            }
        } catch (Exception e) {
            e.printStackTrace();
            System.exit(1);
        }
    }

    private static void contendAll(List<InterProcessMutex> mutexes, int turns, int hold)
        throws Exception {
        CountDownLatch done = new CountDownLatch(mutexes.size());

        handoffs.clear();
        released = 0;
        for (InterProcessMutex mutex : mutexes) {
            new Thread(() -> {
                contend(mutex, turns, hold);
                done.countDown();
            }).start();
        }
        done.await();
    }

    private static double quantile(double share) {
        return handoffs.get((int) (share * (handoffs.size() - 1) + 0.5));
    }

    public static void main(String[] args) throws Exception {
        words = args;
        int contenders = Integer.parseInt(args[1]);
        int turns = Integer.parseInt(option("each"));
        int hold = Integer.parseInt(option("hold"));
        OperatingSystemMXBean process =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        List<InterProcessMutex> mutexes = new ArrayList<>();
        CuratorFramework client = null;

        for (int i = 0; i < contenders; i++) {
            if (client == null || option("mode").equals("sessions")) {
                client = connect(args[0]);
            }
            mutexes.add(new InterProcessMutex(client, "/peers-curator"));
        }
        contendAll(mutexes, (turns + 1) / 2, hold);
        long cpu = process.getProcessCpuTime();
        long began = System.nanoTime();
        contendAll(mutexes, turns, hold);
        double seconds = (System.nanoTime() - began) / 1e9;
        double used = (process.getProcessCpuTime() - cpu) / 1e9;
        Collections.sort(handoffs);
        System.out.printf(
            "lock-contended %d %.6f %.6f 0 0 mode=%s handoff_p50_us=%.1f handoff_p99_us=%.1f%n",
            contenders * turns, seconds, used, option("mode"), quantile(0.5), quantile(0.99));
        System.exit(0);  // the clients have threads
    }
}
