package api

import "encoding/json"

// Call is the body of POST /v1/calls: code that runs by itself, without a sandbox. It has no
// files, no network and no processes.
type Call struct {
	Run      string `json:"run,omitempty"` // "" makes one; for callers on the Unix socket, and tokens with admin
	Task     string `json:"task,omitempty"`
	Language string `json:"language,omitempty"` // "": javascript
	Code     string `json:"code"`               // at most 1 MiB
	Policy   Policy `json:"policy"`
	// TimeoutMS is for how long it may compute, MemoryMB what it may have, both within what
	// the policy allows; 0: the policy's, or 10 s and 64 MiB if that is more.
	TimeoutMS int64 `json:"timeout_ms,omitempty"`
	MemoryMB  int64 `json:"memory_mb,omitempty"`
}

// CallResult is what became of a call. A mistake of the code is in Failure; it is no error of the request.
type CallResult struct {
	ID        string `json:"id"`
	Run       string `json:"run"`
	RequestID string `json:"request_id"` // of its records
	// Value is what the code came to; absent if that is nothing, or it failed.
	Value     json.RawMessage `json:"value,omitempty"`
	Stdout    string          `json:"stdout"`
	Stderr    string          `json:"stderr"`
	Truncated bool            `json:"truncated,omitempty"` // it wrote more than it may, and the rest is gone
	Failure   *CallFailure    `json:"failure,omitempty"`

	MemoryBytes int64 `json:"memory_bytes"` // the most that it had
	TookMS      int64 `json:"took_ms"`
}

// CallFailure is why code has no value. Message and stack may be the code's own.
type CallFailure struct {
	Kind    string `json:"kind"` // thrown, syntax, pending, time, memory, stack, output, crash
	Message string `json:"message"`
	Stack   string `json:"stack,omitempty"`
}
