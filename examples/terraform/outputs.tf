output "plan" {
  description = "The plan that the topics agree with: its id, and what it did."
  value       = var.plan == "" ? null : { for key in ["plan_id", "headline", "has_changes"] : key => module.agreed.plan[key] }
}
