// SPDX-License-Identifier: Apache-2.0

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;

/**
 * Curator's mutex for neighbours.py: Contender CONNECT PATH. Obeys lines of
 * standard input, and answers each with one:
 *
 *     acquire MS       held NODE, or missed
 *     release          released
 *     turns N FOLDER   done, after N times of acquire, enter, leave, release
 *     put PATH TEXT    ok; TEXT "null" stands for null, "empty" for no bytes
 *     get PATH         TEXT, as above
 */
public class Contender {
    private static CuratorFramework curator;
    private static InterProcessMutex mutex;

    /** What may not overlap; judge.py in neighbours.py does the same. */
    private static void enterAndLeave(Path folder) throws Exception {
        Path inside = folder.resolve("inside");
        Path count = folder.resolve("count");

        try {
            Files.createDirectory(inside);
        } catch (FileAlreadyExistsException e) {
            note(folder, "overlap seen by Curator\n");
        }
        long n = Long.parseLong(Files.readString(count).trim());
        Thread.sleep(2);
        Files.writeString(count, (n + 1) + "\n");
        note(folder, "curator\n", "turns");
        Files.deleteIfExists(inside);
    }

    private static void note(Path folder, String text) throws IOException {
        note(folder, text, "overlaps");
    }

    private static void note(Path folder, String text, String name)
            throws IOException {
        Files.writeString(folder.resolve(name), text,
                StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    }

    private static String turns(int n, Path folder) throws Exception {
        for (int i = 0; i < n; i++) {
            mutex.acquire();
            try {
                enterAndLeave(folder);
            } finally {
                mutex.release();
            }
        }
        return "done";
    }

    private static String acquire(long ms) throws Exception {
        if (!mutex.acquire(ms, TimeUnit.MILLISECONDS))
            return "missed";
        return "held " + String.join(",", mutex.getParticipantNodes());
    }

    private static String put(String path, String text) throws Exception {
        ZooKeeper zk = curator.getZookeeperClient().getZooKeeper();
        byte[] data = text.equals("null") ? null
            : text.equals("empty") ? new byte[0]
            : text.getBytes(StandardCharsets.UTF_8);

        zk.create(path, data, ZooDefs.Ids.OPEN_ACL_UNSAFE,
                CreateMode.PERSISTENT);
        return "ok";
    }

    private static String get(String path) throws Exception {
        byte[] data = curator.getZookeeperClient().getZooKeeper()
            .getData(path, false, null);

        return data == null ? "null"
            : data.length == 0 ? "empty"
            : new String(data, StandardCharsets.UTF_8);
    }

    private static String obey(String[] words) throws Exception {
        switch (words[0]) {
        case "acquire":
            return acquire(Long.parseLong(words[1]));
        case "release":
            mutex.release();
            return "released";
        case "turns":
            return turns(Integer.parseInt(words[1]), Paths.get(words[2]));
        case "put":
            return put(words[1], words[2]);
        case "get":
            return get(words[1]);
        default:
            return "what?";
        }
    }

    public static void main(String[] args) throws Exception {
        curator = CuratorFrameworkFactory.newClient(args[0], 20000, 10000,
                new ExponentialBackoffRetry(50, 10));
        curator.start();
        curator.blockUntilConnected();
        mutex = new InterProcessMutex(curator, args[1]);
        System.out.println("ready");

        BufferedReader in = new BufferedReader(
                new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(obey(line.split(" ")));
        }
        curator.close();
    }
}
