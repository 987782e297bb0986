package api

// ApprovalPage is the answer of GET /v1/approvals (query also: limit, at most
// 500, and before, the Next of the page before it) and of POST
// /v1/approvals/answer.
type ApprovalPage struct {
	Approvals []Approval `json:"approvals"`
	Next      string     `json:"next,omitempty"` // "": this is the last page
}

// RevokeApproval is the body of POST /v1/approvals/{id}/revoke: the answer holds
// no more, and later asks wait for a person again.
type RevokeApproval struct {
	Reason string `json:"reason,omitempty"`
}
