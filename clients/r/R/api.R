# Made by tools/r_client.py from the server's OpenAPI description. Do not edit.

#' Register rows; custodians. A worker looks at them, and the state says what it found.
#' @export
ho_register <- function(server, body, prefer = NULL) {
  ho_call(server, "POST", ho_path("/datasets"), headers = list(`Prefer` = prefer), body = body)
}

#' The data sets that the caller may see.
#' @export
ho_list_datasets <- function(server) {
  ho_call(server, "GET", ho_path("/datasets"))
}

#' Public facts, features with types, allowance and what is left of it.
#' @export
ho_show_dataset <- function(server, name) {
  ho_call(server, "GET", ho_path("/datasets/{name}", name = name))
}

#' Raise the budget of a data set; its custodian.
#' @export
ho_raise_dataset <- function(server, name, body) {
  ho_call(server, "PATCH", ho_path("/datasets/{name}", name = name), body = body)
}

#' Close a data set for good; its custodian.
#' @export
ho_close_dataset <- function(server, name) {
  ho_call(server, "DELETE", ho_path("/datasets/{name}", name = name))
}

#' Made-up rows of the same columns, from the declaration alone.
#' @export
ho_twin <- function(server, name, rows = NULL) {
  ho_call(server, "GET", ho_path("/datasets/{name}/twin.csv", name = name), query = list(`rows` = rows))
}

#' Book a file of made-up rows for all analysts, out of the data set's own budget.
#' @export
ho_publish <- function(server, name, body, idempotency_key = NULL) {
  ho_call(server, "POST", ho_path("/datasets/{name}/published", name = name), headers = list(`Idempotency-Key` = idempotency_key), body = body)
}

#' List what its custodian published, each with its price and what it will answer badly.
#' @export
ho_list_published <- function(server, name) {
  ho_call(server, "GET", ho_path("/datasets/{name}/published", name = name))
}

#' The made-up rows that were published.
#' @export
ho_published_rows <- function(server, name, identity) {
  ho_call(server, "GET", ho_path("/datasets/{name}/published/{identity}.csv", name = name, identity = identity))
}

#' Who may spend what, and did; its custodian and auditors.
#' @export
ho_list_grants <- function(server, name) {
  ho_call(server, "GET", ho_path("/datasets/{name}/grants", name = name))
}

#' Give an analyst a share; the data set's custodian.
#' @export
ho_grant <- function(server, name, body) {
  ho_call(server, "POST", ho_path("/datasets/{name}/grants", name = name), body = body)
}

#' Ask the custodian for a larger allowance; whoever has one.
#' @export
ho_request_allowance <- function(server, name, body) {
  ho_call(server, "POST", ho_path("/datasets/{name}/request", name = name), body = body)
}

#' Raise a share, or move its end.
#' @export
ho_change_grant <- function(server, name, analyst, body) {
  ho_call(server, "PATCH", ho_path("/datasets/{name}/grants/{analyst}", name = name, analyst = analyst), body = body)
}

#' Take a share away.
#' @export
ho_revoke_grant <- function(server, name, analyst) {
  ho_call(server, "DELETE", ho_path("/datasets/{name}/grants/{analyst}", name = name, analyst = analyst))
}

#' Send a model or predictions as the body; a worker looks at it alone, in a sandbox.
#' @export
ho_upload <- function(server, file, type, name = NULL, features = NULL, kind = NULL, prefer = NULL) {
  ho_call(server, "PUT", ho_path("/artifacts"), query = list(`name` = name, `features` = features, `kind` = kind), headers = list(`Prefer` = prefer), file = file, type = type)
}

#' The caller's own artefacts.
#' @export
ho_list_artifacts <- function(server) {
  ho_call(server, "GET", ho_path("/artifacts"))
}

#' Say what was found, in words; its inputs; whether it is proven row by row.
#' @export
ho_show_artifact <- function(server, identity, prefer = NULL) {
  ho_call(server, "GET", ho_path("/artifacts/{identity}", identity = identity), headers = list(`Prefer` = prefer))
}

#' Give an own artefact another name; what was signed keeps the one that it had then.
#' @export
ho_rename_artifact <- function(server, identity, body) {
  ho_call(server, "PATCH", ho_path("/artifacts/{identity}", identity = identity), body = body)
}

#' Forget an artefact and its scores; one that waits to be checked is cancelled by it.
#' @export
ho_delete_artifact <- function(server, identity) {
  ho_call(server, "DELETE", ho_path("/artifacts/{identity}", identity = identity))
}

#' The exact price and the half-widths to expect; signed, and good for a while.
#' @export
ho_quote <- function(server, body) {
  ho_call(server, "POST", ho_path("/quotes"), body = body)
}

#' Ask and pay: one booking for all questions. The same key is never charged twice.
#' @export
ho_evaluate <- function(server, body, idempotency_key = NULL) {
  ho_call(server, "POST", ho_path("/evaluations"), headers = list(`Idempotency-Key` = idempotency_key), body = body)
}

#' The caller's own, or those of a custodian's data sets.
#' @export
ho_list_evaluations <- function(server, dataset = NULL) {
  ho_call(server, "GET", ho_path("/evaluations"), query = list(`dataset` = dataset))
}

#' Its state, its place in the queue, and its answer once it is there.
#' @export
ho_show_evaluation <- function(server, identity, prefer = NULL) {
  ho_call(server, "GET", ho_path("/evaluations/{identity}", identity = identity), headers = list(`Prefer` = prefer))
}

#' Cancel an own evaluation before its price is booked; nothing is charged.
#' @export
ho_cancel_evaluation <- function(server, identity) {
  ho_call(server, "DELETE", ho_path("/evaluations/{identity}", identity = identity))
}

#' The answer as one self-contained page, with its receipt.
#' @export
ho_report <- function(server, identity) {
  ho_call(server, "GET", ho_path("/reports/{identity}.html", identity = identity))
}

#' Who the token's owner is.
#' @export
ho_me <- function(server) {
  ho_call(server, "GET", ho_path("/me"))
}

#' The caller's own tokens, without their secrets.
#' @export
ho_list_tokens <- function(server) {
  ho_call(server, "GET", ho_path("/tokens"))
}

#' A new token of the caller's own; its secret is shown this once.
#' @export
ho_make_token <- function(server, body) {
  ho_call(server, "POST", ho_path("/tokens"), body = body)
}

#' The token opens nothing from now on.
#' @export
ho_revoke_token <- function(server, identity) {
  ho_call(server, "DELETE", ho_path("/tokens/{identity}", identity = identity))
}

#' Everybody; administrators, and custodians, who grant shares.
#' @export
ho_list_people <- function(server) {
  ho_call(server, "GET", ho_path("/people"))
}

#' A new person; the answer has the link by which they sign in first.
#' @export
ho_add_person <- function(server, body) {
  ho_call(server, "POST", ho_path("/people"), body = body)
}

#' Another sign-in link; earlier ones open nothing any more.
#' @export
ho_link <- function(server, name) {
  ho_call(server, "POST", ho_path("/people/{name}/link", name = name))
}

#' Nothing of this person's opens any door from now on.
#' @export
ho_disable <- function(server, name) {
  ho_call(server, "DELETE", ho_path("/people/{name}", name = name))
}

#' Take the second factor of somebody who lost it away; their sessions and tokens end.
#' @export
ho_reset_factor <- function(server, name) {
  ho_call(server, "DELETE", ho_path("/people/{name}/factor", name = name))
}

#' Let somebody no longer come through the institution's provider.
#' @export
ho_disconnect <- function(server, name) {
  ho_call(server, "DELETE", ho_path("/people/{name}/provider", name = name))
}

#' Every board.
#' @export
ho_list_boards <- function(server) {
  ho_call(server, "GET", ho_path("/boards"))
}

#' Open a board on an own data set; custodians. Refuses one that would show nothing.
#' @export
ho_open_board <- function(server, body) {
  ho_call(server, "POST", ho_path("/boards"), body = body)
}

#' Show what the board has published, with intervals and certificate.
#' @export
ho_show_board <- function(server, name) {
  ho_call(server, "GET", ho_path("/boards/{name}", name = name))
}

#' The caller's own submissions; the board's custodian sees all.
#' @export
ho_list_submissions <- function(server, name) {
  ho_call(server, "GET", ho_path("/boards/{name}/submissions", name = name))
}

#' Submit a model; it learns whether it improved. The same key is one submission.
#' @export
ho_submit <- function(server, name, body, idempotency_key = NULL) {
  ho_call(server, "POST", ho_path("/boards/{name}/submissions", name = name), headers = list(`Idempotency-Key` = idempotency_key), body = body)
}

#' Cancel an own submission before it is judged; it does not count as one.
#' @export
ho_cancel <- function(server, name, identity) {
  ho_call(server, "DELETE", ho_path("/boards/{name}/submissions/{identity}", name = name, identity = identity))
}

#' Who spent what on which model.
#' @export
ho_show_ledger <- function(server, dataset = NULL) {
  ho_call(server, "GET", ho_path("/ledger"), query = list(`dataset` = dataset))
}

#' Where the chain ends: keep it, and a ledger that is put back is noticed.
#' @export
ho_ledger_head <- function(server) {
  ho_call(server, "GET", ho_path("/ledger/head"))
}

#' Check the whole chain; with a receipt's hash, find that booking. Analysts name a receipt.
#' @export
ho_verify_ledger <- function(server, receipt = NULL) {
  ho_call(server, "GET", ho_path("/ledger/verify"), query = list(`receipt` = receipt))
}

#' Who did what, newest first: all for auditors; custodians' own deeds and their data sets'.
#' @export
ho_audit <- function(server, before = NULL, who = NULL, action = NULL, since = NULL, until = NULL) {
  ho_call(server, "GET", ho_path("/audit"), query = list(`before` = before, `who` = who, `action` = action, `since` = since, `until` = until))
}

#' The same as CSV, without a limit.
#' @export
ho_audit_table <- function(server, who = NULL, action = NULL, since = NULL, until = NULL) {
  ho_call(server, "GET", ho_path("/audit.csv"), query = list(`who` = who, `action` = action, `since` = since, `until` = until))
}
