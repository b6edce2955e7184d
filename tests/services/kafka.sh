# shellcheck shell=bash disable=SC2154 # lib.sh sets them
# Apache Kafka as one process that is broker and controller (KRaft). Sourced by ctl and kafka-tool.

kafka_ports() {
    kafka_port
    kafka_controller_port
}

kafka_config() {
    cat <<END
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@$HOST:$(kafka_controller_port)
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://$HOST:$(kafka_port),CONTROLLER://$HOST:$(kafka_controller_port)
advertised.listeners=PLAINTEXT://$HOST:$(kafka_port)
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=$data_root/kafka

# A test names the topics it wants; a misspelt one must be an error.
auto.create.topics.enable=false
num.partitions=1
default.replication.factor=1
min.insync.replicas=1

# One node, and few partitions so that the first transaction does not wait for fifty of them.
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1

# A test that lets a transaction time out should see it aborted a moment later, not 10 s later.
transaction.abort.timed.out.transaction.cleanup.interval.ms=1000
group.initial.rebalance.delay.ms=0

# After a kill the controller refuses the broker until the session of the one before is over: 9 s by default. Both are
# in one process here, so nothing but a stall of all of it can make this too short.
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=300

# The default takes a quarter of our small heap at once.
log.cleaner.dedupe.buffer.size=8388608
END
}

# The logging configuration of the server and of the tools differ.
kafka_java() {
    local logging=$1
    shift
    # One collector thread: the tests need the cores.
    exec java -Xmx512m -XX:+UseSerialGC -Dlog4j2.configurationFile="$here/kafka/$logging" -cp "$kafka_jars/*" "$@"
}

kafka_prepare() {
    kafka_config >"$state/kafka.properties"
    [[ ! -d $data_root/kafka ]] || return 0
    # Not through new_data: the path of the data is part of the configuration.
    rm -rf "$data_root/kafka.new"
    sed "s|^log.dirs=.*|log.dirs=$data_root/kafka.new|" "$state/kafka.properties" >"$state/kafka-format.properties"
    # A cluster id must be 22 characters of URL-safe base64; ours never meets another cluster.
    (kafka_java log4j2-tools.properties kafka.tools.StorageTool format --cluster-id flow-tests-flow-testsA \
        --config "$state/kafka-format.properties") || return 1
    keep_data kafka
}

kafka_launch() { kafka_java log4j2.properties kafka.Kafka "$state/kafka.properties"; }

# Asks for the cluster's metadata (version 1, no topics) and wants one live broker in the answer. An open port would not
# prove that, and a Java client would take seconds to ask.
kafka_answers() (
    exec 3<>"/dev/tcp/$HOST/$(kafka_port)" || exit 1
    printf '\0\0\0\x13\0\3\0\1\0\0\0\1\0\5probe\0\0\0\0' >&3
    # Size, correlation id, number of brokers: 4 bytes each.
    read -ra reply < <(timeout 5 head -c 12 <&3 | od -An -v -tu1)
    [[ ${reply[*]:8} == "0 0 0 1" ]]
) 2>/dev/null

kafka_stop_signal() { echo TERM; }
