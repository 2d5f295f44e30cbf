// Asks Kafka's own server-side assignors who owns what, in groups made at random, and prints a JSON array, one step a
// line: who owns each partition of a topic, as the numbers of members in the order of their ids. Each group begins with nothing and then changes: members leave, join or subscribe to other topics, topics get
// partitions. Every step starts from what the one before assigned, as the coordinator keeps it.
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.PartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.SimpleAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

public class ServerAssignors {
    static final Random RANDOM = new Random(848932);
    static final List<PartitionAssignor> ASSIGNORS =
        List.of(new UniformAssignor(), new RangeAssignor(), new SimpleAssignor());

    final Map<String, Uuid> ids = new TreeMap<>();
    final Map<String, Integer> counts = new TreeMap<>();
    final Map<String, TreeSet<String>> members = new TreeMap<>();
    final Map<String, String> instances = new TreeMap<>();
    final boolean alike = RANDOM.nextInt(5) < 2;
    final boolean many = RANDOM.nextInt(12) == 0;

    public static void main(String[] args) {
        List<String> lines = new ArrayList<>();
        for (int number = 0; number < Integer.parseInt(args[0]); number++) {
            new ServerAssignors().steps(lines);
        }
        System.out.println("[\n" + String.join(",\n", lines) + "\n]");
    }

    void steps(List<String> lines) {
        int topics = 1 + RANDOM.nextInt(many ? 30 : 6);
        for (int number = 0; number < topics; number++) {
            String name = "t" + number;
            ids.put(name, new Uuid(RANDOM.nextLong(), RANDOM.nextLong()));
            counts.put(name, 1 + RANDOM.nextInt(RANDOM.nextInt(8) == 0 ? 40 : 8));
        }
        int size = 1 + RANDOM.nextInt(many ? 40 : 9);
        for (int number = 0; number < size; number++) {
            join();
        }
        Map<PartitionAssignor, Map<String, Map<String, TreeSet<Integer>>>> held = new HashMap<>();
        for (int step = 0; step < 4; step++) {
            if (step > 0) {
                change();
            }
            List<String> answers = new ArrayList<>();
            for (PartitionAssignor assignor : ASSIGNORS) {
                Map<String, Map<String, TreeSet<Integer>>> owned = held.getOrDefault(assignor, Map.of());
                held.put(assignor, ask(assignor, owned));
                answers.add(quoted(assignor.name()) + ":" + json(owners(held.get(assignor))));
            }
            lines.add("{\"step\":" + step + ",\"ids\":" + json(ids) + ",\"topics\":" + json(counts) + ",\"subscriptions\":"
                + json(members) + ",\"instances\":" + json(instances) + "," + String.join(",", answers) + "}");
        }
    }

    Map<String, List<TreeSet<Integer>>> owners(Map<String, Map<String, TreeSet<Integer>>> held) {
        Map<String, List<TreeSet<Integer>>> owners = new TreeMap<>();
        List<String> order = new ArrayList<>(members.keySet());
        held.forEach((member, topics) -> topics.forEach((topic, partitions) -> {
            List<TreeSet<Integer>> those = owners.computeIfAbsent(topic, __ -> new ArrayList<>());
            partitions.forEach(each -> {
                while (those.size() <= each) {
                    those.add(new TreeSet<>());
                }
                those.get(each).add(order.indexOf(member));
            });
        }));
        return owners;
    }

    void join() {
        String id = RANDOM.nextInt(4) == 0
            ? "C" + RANDOM.nextInt(100) : new Uuid(RANDOM.nextLong(), RANDOM.nextLong()).toString();
        members.put(id, subscription());
        if (RANDOM.nextInt(4) == 0) {
            instances.put(id, "instance-" + RANDOM.nextInt(1_000_000));
        }
    }

    TreeSet<String> subscription() {
        if (alike) {
            return new TreeSet<>(counts.keySet());
        }
        return counts.keySet().stream().filter(name -> RANDOM.nextInt(3) > 0).collect(Collectors.toCollection(TreeSet::new));
    }

    void change() {
        String someone = new ArrayList<>(members.keySet()).get(RANDOM.nextInt(members.size()));
        String topic = new ArrayList<>(counts.keySet()).get(RANDOM.nextInt(counts.size()));
        switch (RANDOM.nextInt(alike ? 4 : 5)) {
            case 0 -> {
                if (members.size() > 1) {
                    members.remove(someone);
                    instances.remove(someone);
                }
            }
            case 1 -> join();
            case 2 -> {
                for (int number = 1 + RANDOM.nextInt(5); number > 0; number--) {
                    join();
                }
            }
            case 3 -> counts.merge(topic, 1 + RANDOM.nextInt(6), Integer::sum);
            default -> members.put(someone, subscription());
        }
    }

    Map<String, Map<String, TreeSet<Integer>>> ask(
        PartitionAssignor assignor, Map<String, Map<String, TreeSet<Integer>>> owned
    ) {
        Map<String, MemberSubscriptionAndAssignmentImpl> specs = new HashMap<>();
        Map<Uuid, Map<Integer, String>> inverted = new HashMap<>();
        members.forEach((id, names) -> {
            Map<Uuid, Set<Integer>> held = new HashMap<>();
            owned.getOrDefault(id, Map.of()).forEach((topic, partitions) -> {
                held.put(ids.get(topic), new HashSet<>(new ArrayList<>(partitions)));
                partitions.forEach(each -> inverted.computeIfAbsent(ids.get(topic), __ -> new HashMap<>()).put(each, id));
            });
            Set<Uuid> subscribed = new LinkedHashSet<>();
            new HashSet<>(new ArrayList<>(names)).forEach(name -> subscribed.add(ids.get(name)));
            specs.put(id, new MemberSubscriptionAndAssignmentImpl(
                Optional.empty(), Optional.ofNullable(instances.get(id)), subscribed, new Assignment(held)));
        });
        boolean same = new HashSet<>(members.values()).size() == 1;
        Map<Uuid, String> names = new HashMap<>();
        ids.forEach((name, id) -> names.put(id, name));
        Map<String, Map<String, TreeSet<Integer>>> answer = new TreeMap<>();
        assignor.assign(
            new GroupSpecImpl(
                Collections.unmodifiableMap(specs),
                same ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS,
                inverted),
            new SubscribedTopicDescriber() {
                public int numPartitions(Uuid id) {
                    return counts.get(names.get(id));
                }

                public Set<String> racksForPartition(Uuid id, int partition) {
                    return Set.of();
                }
            }
        ).members().forEach((member, assigned) -> assigned.partitions().forEach((id, partitions) -> {
            // What a member doesn't subscribe to (any more) is taken out before it hears of it.
            if (!partitions.isEmpty() && members.get(member).contains(names.get(id))) {
                answer.computeIfAbsent(member, __ -> new TreeMap<>()).put(names.get(id), new TreeSet<>(partitions));
            }
        }));
        return answer;
    }

    static String json(Object value) {
        if (value instanceof Map<?, ?> map) {
            return map.entrySet().stream().map(each -> quoted(each.getKey()) + ":" + json(each.getValue()))
                .collect(Collectors.joining(",", "{", "}"));
        }
        if (value instanceof TreeSet<?> set && set.size() == 1 && set.first() instanceof Integer only) {
            return only.toString();
        }
        if (value instanceof Collection<?> several) {
            return several.stream().map(ServerAssignors::json).collect(Collectors.joining(",", "[", "]"));
        }
        return value instanceof Integer ? value.toString() : quoted(value);
    }

    static String quoted(Object text) {
        return '"' + text.toString() + '"';
    }
}
