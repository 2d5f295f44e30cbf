terraform {
  required_version = ">= 1.7"

  required_providers {
    kafka = {
      source  = "Mongey/kafka"
      version = ">= 0.7, < 1.0"
    }
    external = {
      source  = "hashicorp/external"
      version = ">= 2.3, < 3.0"
    }
  }
}

provider "kafka" {
  bootstrap_servers = var.bootstrap_servers
}
