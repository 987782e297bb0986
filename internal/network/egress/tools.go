package egress

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/requests"
)

// Bounds of a call.
const (
	maxCallBody = 72 << 10        // bytes: the longest arguments, and the words around them
	maxCallHead = 8 << 10         // what becomes of one is within what a connection takes
	callWrite   = 2 * time.Minute // in which an answer has to be taken
)

// callBody is a call as it is posted.
type callBody struct {
	Tool string         `json:"tool"`
	Args jsontext.Value `json:"args,omitempty"`
}

// toolView is a tool as it is listed.
type toolView struct {
	Name        string         `json:"name"`
	Description string         `json:"description,omitempty"`
	Arguments   jsontext.Value `json:"arguments"`
}

// toolsKeptOpen is how long a connection to the tools stays without a call.
const toolsKeptOpen = 2 * time.Minute

// serveTools answers a connection to the tools' name, by plain HTTP. The door knows what a tool is, and who may call it.
func (s *guestStream) serveTools(ctx context.Context) {
	if rule, problem := s.router.guests.countConnection(s.sandbox); problem != "" {
		s.replyOpen(channel.Reply{Error: s.toolsPassage().refuseConnection(ctx, rule, problem)})
		return
	}
	defer s.router.guests.disconnect(s.sandbox)
	id, _, forget := s.router.guests.carryConn(s.sandbox, s.conn)
	defer forget()
	if !s.replyOpen(channel.Reply{OK: true, Text: id}) {
		return
	}
	if err := s.conn.SetDeadline(time.Time{}); err != nil {
		return
	}
	server := &http.Server{
		Handler:           http.HandlerFunc(s.answerTools),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: s.router.limits.HelloTime,
		IdleTimeout:       toolsKeptOpen,
		MaxHeaderBytes:    maxCallHead,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	requests.ServeOne(s.conn, server, func(problem string) { s.malformed(ctx, problem) })
}

func (s *guestStream) answerTools(w http.ResponseWriter, r *http.Request) {
	switch path := r.URL.Path; {
	case r.Method == http.MethodGet && (path == "/" || path == "/tools"):
		s.listTools(w, r)
	case r.Method == http.MethodPost && path == "/call_tool":
		s.callTool(w, r)
	case path == "/" || path == "/tools" || path == "/call_tool":
		s.malformed(r.Context(), "a request is neither for the list of tools nor a call of one")
		s.answerMember(w, http.StatusMethodNotAllowed, "error", "tools are listed with GET /tools and called with POST /call_tool")
	default:
		s.malformed(r.Context(), "a request is neither for the list of tools nor a call of one")
		s.answerMember(w, http.StatusNotFound, "error", "there is nothing here but /tools and /call_tool")
	}
}

func (s *guestStream) listTools(w http.ResponseWriter, r *http.Request) {
	list, err := s.router.door.Tools(r.Context(), s.sandbox)
	if err != nil {
		s.router.log.Error("tools could not be listed", "sandbox", s.sandbox, "error", err)
		s.answerMember(w, http.StatusServiceUnavailable, "error", fault.Sentence(err, "the tools could not be listed"))
		return
	}
	views := []toolView{}
	for _, t := range list {
		views = append(views, toolView{Name: t.Name, Description: t.Description, Arguments: jsontext.Value(t.Arguments)})
	}
	s.answerMember(w, http.StatusOK, "tools", views)
}

func (s *guestStream) callTool(w http.ResponseWriter, r *http.Request) {
	call, status, problem := readCall(w, r, s.router.limits.HelloTime)
	if problem != "" {
		s.malformed(r.Context(), problem)
		s.answerMember(w, status, "error", problem)
		return
	}
	a, err := s.router.door.CallTool(r.Context(), door.ToolAsk{Sandbox: s.sandbox, Tool: call.Tool, Arguments: string(call.Args)})
	switch {
	case err != nil:
		s.router.log.Error("a tool could not be called", "sandbox", s.sandbox, "error", err)
		s.answerMember(w, http.StatusServiceUnavailable, "error", fault.Sentence(err, "the call could not be judged or recorded, so it was not made"))
	case a.Outcome == door.ToolAnswered:
		s.sayResult(r.Context(), w, a.Result)
	case a.Outcome == door.ToolHeld:
		s.answerJSON(w, http.StatusForbidden, map[string]any{"error": a.Reason + "; request " + a.Approval + "; a person approves it on the host: " + door.ApproveCommand(a.Approval) + "; call it again then", "approval": a.Approval})
	default:
		s.answerMember(w, statusOf(a.Outcome), "error", withRequest(a.Reason, a.RequestID))
	}
}

// resultCopies are how often a result is in memory until its client has read it: as it came, and
// as it is written, in a buffer that grows.
const resultCopies = 3

// sayResult answers with a result, if the sandbox has room for it: its client may not read it.
func (s *guestStream) sayResult(ctx context.Context, w http.ResponseWriter, result jsontext.Value) {
	memory, size := s.router.guests.memory(s.sandbox), int64(resultCopies*len(result))
	if !memory.Take(size) {
		reason := s.toolsPassage().refuseConnection(ctx, door.RuleHostMemory, "the tool was called, and there is no room for its answer: "+memory.Sentence())
		s.answerMember(w, http.StatusServiceUnavailable, "error", reason)
		return
	}
	defer memory.Give(size)
	s.answerMember(w, http.StatusOK, "result", result)
}

// toolsPassage is a connection to the tools, for what is put on record of it.
func (s *guestStream) toolsPassage() *passage {
	return &passage{router: s.router, sandbox: s.sandbox, name: channel.ToolsHost, port: toolsPort}
}

// malformed has it recorded that a guest sent what is no call.
func (s *guestStream) malformed(ctx context.Context, problem string) {
	ctx, cancel := recording(ctx) // whether its client waits for the answer or not
	defer cancel()
	if _, err := s.router.door.CallTool(ctx, door.ToolAsk{Sandbox: s.sandbox, Malformed: problem}); err != nil {
		s.router.log.Error("what is no call of a tool could not be recorded", "sandbox", s.sandbox, "error", err)
	}
}

// statusOf is the status of a call without a result. One that was made is answered, with
// why it failed.
func statusOf(o door.ToolOutcome) int {
	switch o {
	case door.ToolFailed, door.ToolAnswered:
		return http.StatusOK
	case door.ToolUnknown:
		return http.StatusNotFound
	case door.ToolInvalid:
		return http.StatusUnprocessableEntity
	case door.ToolBusy:
		return http.StatusTooManyRequests
	case door.ToolRefused, door.ToolHeld:
	}
	return http.StatusForbidden
}

// readCall reads a call, or says what is wrong with it. Once it is read, the server's own
// watch for the guest's end takes the deadline back.
func readCall(w http.ResponseWriter, r *http.Request, within time.Duration) (call callBody, status int, problem string) {
	if err := http.NewResponseController(w).SetReadDeadline(time.Now().Add(within)); err != nil {
		return call, http.StatusServiceUnavailable, "the call could not be read"
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxCallBody))
	if _, long := errors.AsType[*http.MaxBytesError](err); long {
		return call, http.StatusRequestEntityTooLarge, "a call has at most " + strconv.Itoa(maxCallBody) + " bytes"
	}
	if err != nil {
		return call, http.StatusBadRequest, "the call broke off"
	}
	if err := json.Unmarshal(body, &call, json.RejectUnknownMembers(true)); err != nil || call.Tool == "" {
		return call, http.StatusBadRequest, `a call is JSON: {"tool": "NAME", "args": {...}}, with no member twice and no other`
	}
	return call, 0, ""
}

// answerMember answers with one member.
func (s *guestStream) answerMember(w http.ResponseWriter, status int, member string, value any) {
	s.answerJSON(w, status, map[string]any{member: value})
}

func (s *guestStream) answerJSON(w http.ResponseWriter, status int, members map[string]any) {
	var b bytes.Buffer
	if err := json.MarshalWrite(&b, members, json.Deterministic(true)); err != nil {
		s.router.log.Error("an answer about tools can't be written", "sandbox", s.sandbox, "error", err)
		status = http.StatusInternalServerError
		b.Reset()
		b.WriteString(`{"error":"the answer can't be written"}`)
	}
	b.WriteByte('\n')
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(callWrite)) // without one the guest only waits for itself
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(b.Len()))
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // a guest that is gone needs none
}
