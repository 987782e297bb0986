package httpapi

import (
	"encoding/json"
	"net/http"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/jscall"
)

// maxCallBody bounds a call's JSON, in which a byte of code may be six.
const maxCallBody = 8 << 20

// callRoutes are about code that runs without a sandbox.
type callRoutes struct{ *desk }

func (s callRoutes) makeCall(w http.ResponseWriter, r *http.Request) error {
	who, err := callerOf(r.Context())
	if err != nil {
		return err
	}
	var body api.Call
	if err := readLarge(r, &body, maxCallBody); err != nil {
		return err
	}
	if s.cfg.Calls == nil {
		return errNotWired
	}
	if body.Run != "" && !who.seesAll() {
		return fault.New(fault.ErrForbidden, "a call of a token has a run of its own; give no run")
	}
	const mostMB, mostMS = 1 << 20, 1 << 40
	if body.TimeoutMS < 0 || body.TimeoutMS > mostMS || body.MemoryMB < 0 || body.MemoryMB > mostMB {
		return fault.Invalid("timeout_ms and memory_mb can't be negative, or as much as is asked for")
	}
	chosen, err := sandboxRoutes(s).policyFor(r.Context(), body.Policy, who)
	if err != nil {
		return err
	}
	done, err := s.cfg.Calls.Make(r.Context(), jscall.Request{
		Run: body.Run, Task: body.Task, Language: body.Language, Code: body.Code, Policy: chosen.policy,
		Timeout: milliseconds(body.TimeoutMS), MemoryBytes: body.MemoryMB << 20, User: who.name, Token: who.ownerOf().Token,
	})
	if err != nil {
		return err
	}
	return writeJSON(w, r, http.StatusOK, viewCall(done))
}

func viewCall(done jscall.Done) api.CallResult {
	v := api.CallResult{
		ID: done.ID, Run: done.Run, RequestID: done.RequestID, Value: json.RawMessage(done.Value),
		Stdout: done.Stdout, Stderr: done.Stderr, Truncated: done.Truncated, MemoryBytes: done.MemoryBytes, TookMS: done.Took.Milliseconds(),
	}
	if f := done.Failure; f != nil {
		v.Failure = &api.CallFailure{Kind: string(f.Kind), Message: f.Message, Stack: f.Stack}
	}
	return v
}
