// Asks the assignors of Kafka's clients who owns what. Each line of the input is a group, in fields that tabs separate:
// the assignor; each partition with the racks of its replicas, as t0-1=a+b; each member with its rack (may be empty), the
// topics it subscribes to and the partitions it owns, as m0|a|t0+t1|t0-1. Prints what each member gets, a group a line.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;

import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

public class ClientAssignors {
    static final Map<String, ConsumerPartitionAssignor> ASSIGNORS = Map.of(
        "range", new RangeAssignor(), "roundrobin", new RoundRobinAssignor(), "sticky", new StickyAssignor());
    static final int GENERATION = 1;

    public static void main(String[] args) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] fields = line.split("\t", -1);
            Map<String, Subscription> members = new HashMap<>();
            for (String member : listed(fields[2], ",")) {
                String[] of = member.split("\\|", -1);
                members.put(of[0], subscription(of[0], of[1], listed(of[2], "\\+"), partitions(of[3])));
            }
            Map<String, Assignment> assigned = ASSIGNORS.get(fields[0])
                .assign(cluster(listed(fields[1], ",")), new GroupSubscription(members)).groupAssignment();
            List<String> shown = new ArrayList<>();
            for (Map.Entry<String, Assignment> each : new TreeMap<>(assigned).entrySet()) {
                shown.add(each.getKey() + "=" + String.join("+", each.getValue().partitions().stream().map(Object::toString).toList()));
            }
            System.out.println(String.join(",", shown));
        }
    }

    static List<String> listed(String text, String separator) {
        return text.isEmpty() ? List.of() : List.of(text.split(separator));
    }

    static List<TopicPartition> partitions(String text) {
        List<TopicPartition> found = new ArrayList<>();
        for (String name : listed(text, "\\+")) {
            int dash = name.lastIndexOf('-');
            found.add(new TopicPartition(name.substring(0, dash), Integer.parseInt(name.substring(dash + 1))));
        }
        return found;
    }

    // The sticky assignor sends what a member owns, and since when, as user data.
    static Subscription subscription(String member, String rack, List<String> topics, List<TopicPartition> owned) {
        ByteBuffer data = null;
        if (!owned.isEmpty()) {
            StickyAssignor own = new StickyAssignor();
            own.onAssignment(new Assignment(owned, null),
                new ConsumerGroupMetadata("group", GENERATION, member, Optional.empty()));
            data = own.subscriptionUserData(new HashSet<>(topics));
        }
        return new Subscription(topics, data, owned, owned.isEmpty() ? -1 : GENERATION,
            rack.isEmpty() ? Optional.empty() : Optional.of(rack));
    }

    // One broker for each rack, and one without a rack that has the partitions whose racks aren't stated.
    static Cluster cluster(List<String> stated) {
        Map<String, Node> brokers = new TreeMap<>();
        List<PartitionInfo> partitions = new ArrayList<>();
        for (String each : stated) {
            String[] sides = each.split("=", -1);
            TopicPartition of = partitions(sides[0]).get(0);
            List<Node> replicas = new ArrayList<>();
            for (String rack : sides[1].split("\\+", -1)) {
                replicas.add(brokers.computeIfAbsent(rack,
                    name -> new Node(brokers.size(), "host", 9092, name.isEmpty() ? null : name)));
            }
            Node[] nodes = replicas.toArray(new Node[0]);
            partitions.add(new PartitionInfo(of.topic(), of.partition(), nodes[0], nodes, nodes));
        }
        return new Cluster("cluster", brokers.values(), partitions, Set.of(), Set.of());
    }
}
