# Reads the plan's figures at every terraform plan; plans and writes nothing.
data "external" "plan" {
  count   = var.plan == "" ? 0 : 1
  program = ["planner", "external"]
  query   = { plan = var.plan }
}

# Refuses tfvars that don't belong to the plan: applying old ones would undo its replication factors.
module "agreed" {
  source       = "./agreed"
  plan         = one(data.external.plan[*].result)
  kafka_topics = var.kafka_topics
}

# Topics that the plan created are there already: Terraform takes them over, and does nothing with those that it has.
import {
  for_each = module.agreed.created
  to       = kafka_topic.this[each.key]
  id       = each.key
}

resource "kafka_topic" "this" {
  for_each = module.agreed.kafka_topics

  name               = each.key
  partitions         = each.value.partitions
  replication_factor = each.value.replication_factor
  config             = each.value.config

  lifecycle {
    prevent_destroy = true

    # The throttle of a reassignment isn't declared anywhere: without this, Terraform would remove it while replicas move.
    ignore_changes = [
      config["leader.replication.throttled.replicas"],
      config["follower.replication.throttled.replicas"],
    ]
  }
}
