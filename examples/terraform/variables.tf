variable "bootstrap_servers" {
  description = "Addresses of the brokers, host:port."
  type        = list(string)
}

variable "plan" {
  description = "The folder that planner whatif wrote; empty if the last change wasn't a plan."
  type        = string
  default     = ""
}

variable "kafka_topics" {
  description = "All topics by name: terraform/kafka_topics.auto.tfvars.json of the plan that was applied last."
  type = map(object({
    partitions         = number
    replication_factor = number
    config             = optional(map(string))
  }))
}
