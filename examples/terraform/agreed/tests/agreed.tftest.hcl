variables {
  plan = {
    plan_id      = "0123456789abcdef"
    kafka_topics = "{\"orders\":{\"config\":{},\"partitions\":6,\"replication_factor\":3}}"
  }
  kafka_topics = {
    orders = { partitions = 6, replication_factor = 3 }
    other  = { partitions = 1, replication_factor = 1, config = { "retention.ms" = "3600000" } }
  }
}

run "topics_as_the_plan_leaves_them_are_handed_on" {
  command = apply

  assert {
    condition     = output.kafka_topics["orders"].replication_factor == 3 && length(output.kafka_topics) == 2
    error_message = "A topic that the plan doesn't know was lost."
  }
}

run "topics_whose_configs_have_other_keys_are_handed_on" {
  command = apply

  variables {
    plan = {
      plan_id      = "0123456789abcdef"
      kafka_topics = "{\"a\":{\"config\":null,\"partitions\":6,\"replication_factor\":3},\"b\":{\"config\":{\"retention.ms\":\"1\"},\"partitions\":1,\"replication_factor\":3}}"
    }
    kafka_topics = {
      a = { partitions = 6, replication_factor = 3, config = {} }
      b = { partitions = 1, replication_factor = 3, config = { "retention.ms" = "1" } }
    }
  }

  assert {
    condition     = length(output.kafka_topics) == 2
    error_message = "A topic of the plan was lost."
  }
}

run "old_replication_factors_are_refused" {
  command = plan

  variables {
    kafka_topics = { orders = { partitions = 6, replication_factor = 2 } }
  }

  expect_failures = [output.kafka_topics]
}

run "fewer_partitions_are_refused" {
  command = plan

  variables {
    kafka_topics = { orders = { partitions = 4, replication_factor = 3 } }
  }

  expect_failures = [output.kafka_topics]
}

run "a_config_that_nobody_knows_is_refused" {
  command = plan

  variables {
    plan = {
      plan_id      = "0123456789abcdef"
      kafka_topics = "{\"orders\":{\"config\":null,\"partitions\":6,\"replication_factor\":3}}"
    }
    kafka_topics = { orders = { partitions = 6, replication_factor = 3, config = null } }
  }

  expect_failures = [output.kafka_topics]
}

run "a_config_that_somebody_wrote_is_taken" {
  command = apply

  variables {
    plan = {
      plan_id      = "0123456789abcdef"
      kafka_topics = "{\"orders\":{\"config\":null,\"partitions\":6,\"replication_factor\":3}}"
    }
    kafka_topics = { orders = { partitions = 6, replication_factor = 3, config = {} } }
  }

  assert {
    condition     = length(output.kafka_topics["orders"].config) == 0
    error_message = "The config that was written was lost."
  }
}

run "without_a_plan_everything_is_handed_on" {
  command = apply

  variables {
    plan         = null
    kafka_topics = { orders = { partitions = 6, replication_factor = 3, config = {} } }
  }

  assert {
    condition     = length(output.kafka_topics) == 1
    error_message = "The topic was lost."
  }
}

run "topics_that_the_plan_created_are_imported_where_they_are_declared" {
  command = plan

  variables {
    plan = {
      plan_id        = "0123456789abcdef"
      kafka_topics   = "{}"
      created_topics = "[\"gone\",\"other\"]"
    }
    kafka_topics = { other = { partitions = 1, replication_factor = 1, config = {} } }
  }

  assert {
    condition     = output.created == toset(["other"])
    error_message = "Other topics than the declared ones that the plan created."
  }
}

run "a_first_step_is_warned_of" {
  command = plan

  variables {
    plan         = { plan_id = "0123456789abcdef", complete = "false", kafka_topics = "{}" }
    kafka_topics = {}
  }

  expect_failures = [check.the_plan_is_complete]
}

run "a_topic_that_is_not_declared_is_warned_of" {
  command = plan

  variables {
    kafka_topics = {}
  }

  expect_failures = [check.the_topics_are_the_plans]
}
