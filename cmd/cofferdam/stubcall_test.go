package main

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/cofferdam-dev/cofferdam/api"
)

// call answers as code that says what is to become of it.
func (d *stubDaemon) call(w http.ResponseWriter, r *http.Request) {
	var body api.Call
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	made := api.CallResult{ID: "call-1", Run: "run-1", RequestID: "req1", TookMS: 1, MemoryBytes: 1 << 20}
	switch code := strings.TrimSpace(body.Code); code {
	case "refused":
		refuse(w, http.StatusForbidden, "the policy refuses the code: rule no-eval denies it [rules.no-eval]; request req1")
		return
	case "bad":
		refuse(w, http.StatusBadRequest, "the code is bad")
		return
	case "down":
		refuse(w, http.StatusServiceUnavailable, "the log can't be written")
		return
	case "slow":
		made.Failure = &api.CallFailure{Kind: "time", Message: "it computed for more than the 10s that it may"}
	case "throw":
		made.Stdout, made.Stderr, made.Truncated = "before\n", "oh\n", true
		made.Failure = &api.CallFailure{Kind: "thrown", Message: "Error: b\x1boom", Stack: "    at <eval> (call.js:1:1)"}
	case "nothing":
		made.Stdout = "only this\n"
	default:
		text, _ := json.Marshal(body)
		made.Stdout, made.Value = "written\n", text
	}
	answer(w, http.StatusOK, made)
}
