# Needs no provider: what is declared is held against what the plan says.
terraform {
  required_version = ">= 1.7"
}

variable "plan" {
  description = "The answer of planner external; null where there is no plan."
  type        = map(string)
  default     = null
}

variable "kafka_topics" {
  description = "The topics as they are declared."
  type = map(object({
    partitions         = number
    replication_factor = number
    config             = optional(map(string))
  }))
}

locals {
  planned = jsondecode(var.plan == null ? "{}" : var.plan["kafka_topics"])
  unlike = sort([
    for name, topic in var.kafka_topics : name
    if try(
      topic.partitions != local.planned[name].partitions ||
      topic.replication_factor != local.planned[name].replication_factor,
      false,
    )
  ])
  # null isn't none: Terraform would take away what such a topic has.
  unknown = sort([
    for name, topic in var.kafka_topics : name
    if topic.config == null && !try(local.planned[name].config != null, false)
  ])
}

# Checks warn at every terraform plan, and refuse nothing.
check "the_plan_is_complete" {
  assert {
    condition     = try(var.plan["complete"], "true") == "true"
    error_message = "Plan ${try(substr(var.plan["plan_id"], 0, 12), "")} is a first step: run planner whatif again once it is applied."
  }
}

check "the_topics_are_the_plans" {
  assert {
    condition     = length(setsubtract(keys(local.planned), keys(var.kafka_topics))) == 0
    error_message = "${join(", ", setsubtract(keys(local.planned), keys(var.kafka_topics)))}: in the plan, but not declared; Terraform leaves such topics alone."
  }
}

output "kafka_topics" {
  description = "The topics, once they agree with the plan. Topics that it doesn't know are left to Terraform alone."
  value       = var.kafka_topics

  precondition {
    condition     = length(local.unlike) == 0
    error_message = "${join(", ", local.unlike)}: not declared as plan ${try(substr(var.plan["plan_id"], 0, 12), "")} leaves them; take its terraform/kafka_topics.auto.tfvars.json over."
  }

  precondition {
    condition     = length(local.unknown) == 0
    error_message = "${join(", ", local.unknown)}: config is null, since the state that was planned from didn't tell a topic's own configuration from what it inherits; write it, {} for none."
  }
}

output "created" {
  description = "The declared topics that the plan created."
  value = toset([
    for name in try(jsondecode(var.plan["created_topics"]), []) : name if contains(keys(var.kafka_topics), name)
  ])
}

output "plan" {
  description = "The plan as it was given."
  value       = var.plan
}
