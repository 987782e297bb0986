package keeper

import (
	"encoding/json"
	"errors"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/process"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// Verb is what a client asks for.
type Verb string

// The verbs. After the Request frame of VerbCall, VerbStream and VerbExec the
// client sends the guest's FrameOpen; after the Response of the first two the
// keeper sends the guest's FrameReply: both verbatim, so that they may be as
// large as frames can. A VerbStream's connection then carries the stream's bytes
// both ways. After the Request of VerbSend the client sends the command's frame.
// VerbList, VerbGet and VerbOutput are answered by several Responses, all but the
// last with More. A client that has recorded what VerbSettle was answered with sends
// its Request again.
const (
	VerbPing     Verb = "ping"
	VerbLaunch   Verb = "launch"
	VerbTrack    Verb = "track"
	VerbSetMeta  Verb = "set_meta"
	VerbList     Verb = "list"
	VerbGet      Verb = "get"
	VerbSignal   Verb = "signal"
	VerbKill     Verb = "kill"
	VerbWait     Verb = "wait"
	VerbForget   Verb = "forget"
	VerbCall     Verb = "call"
	VerbStream   Verb = "stream"
	VerbExec     Verb = "exec"
	VerbAttach   Verb = "attach"
	VerbSend     Verb = "send"
	VerbOutput   Verb = "output" // FeatureOutput
	VerbSettle   Verb = "settle" // FeatureSettle
	VerbFreeze   Verb = "freeze"
	VerbThaw     Verb = "thaw"
	VerbAdopt    Verb = "adopt"
	VerbShutdown Verb = "shutdown"
)

// Request is the first frame of a connection.
type Request struct {
	Verb    Verb            `json:"verb"`
	ID      string          `json:"id,omitempty"`     // the sandbox
	Launch  *Launch         `json:"launch,omitempty"` // of VerbThaw, too
	Freeze  *Freeze         `json:"freeze,omitempty"`
	Pids    []int           `json:"pids,omitempty"` // of VerbTrack, from who has only numbers
	Meta    json.RawMessage `json:"meta,omitempty"`
	Signal  int             `json:"signal,omitempty"`
	Options ExecOptions     `json:"options,omitzero"`
	Adopt   *Command        `json:"adopt,omitempty"`
	Command string          `json:"command,omitempty"`
	Offset  int64           `json:"offset,omitempty"`
	// Processes are of VerbTrack; a Start of 0 is of one that is over.
	Processes []process.ID `json:"processes,omitempty"` // FeatureProcesses
}

// Response answers a Request.
type Response struct {
	OK       bool         `json:"ok"`
	Category string       `json:"category,omitempty"` // of the error; "" is an error of ours
	Error    string       `json:"error,omitempty"`
	Sandbox  *Sandbox     `json:"sandbox,omitempty"`
	Command  *Command     `json:"command,omitempty"` // of the sandbox last sent
	Exit     *ProcessExit `json:"exit,omitempty"`
	Output   *Output      `json:"output,omitempty"`
	Passage  *Passage     `json:"passage,omitempty"` // of the output before
	Settled  *Settled     `json:"settled,omitempty"`
	More     bool         `json:"more,omitempty"`
	Hello    *Hello       `json:"hello,omitempty"` // of VerbPing
}

// failure is the Response for an error. Keeper and client are one
// installation's, so even an error of ours is told whole.
func failure(err error) Response {
	r := Response{Error: text.Shorten(err.Error(), 16<<10)}
	if kind := fault.KindOf(err); kind.Category != nil {
		r.Category = kind.Name
	}
	return r
}

// responseError is what failure was made of, as far as it travels.
func (r *Response) responseError() error {
	if r.OK {
		return nil
	}
	if r.Category == "" {
		return errors.New("keeper: " + r.Error)
	}
	return fault.KindNamed(r.Category).Remake(r.Error)
}

// sendResponse sends a Response; a client that is gone is its own loss.
func sendResponse(conn *channel.Conn, r Response) { _ = conn.WriteJSON(channel.FrameReply, r) }
