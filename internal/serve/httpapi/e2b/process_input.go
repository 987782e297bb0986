package e2b

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
)

// processInput is input of one of two kinds.
type processInput struct {
	Stdin *octets `json:"stdin"`
	PTY   *octets `json:"pty"`
}

type inputRequest struct {
	Process *selector     `json:"process"`
	Input   *processInput `json:"input"`
}

// sendInput passes input to a command, and returns when it has been taken.
func (d inputs) sendInput(w http.ResponseWriter, c *call) error {
	var req inputRequest
	if err := readUnary(w, c, &req); err != nil {
		return err
	}
	if err := req.Input.checkInput(); err != nil {
		return err
	}
	command, what, err := d.findCommand(c, req.Process, false)
	if err != nil {
		return err
	}
	if err := d.putInput(c, command, what, req.Input); err != nil {
		return err
	}
	return writeUnary(w, c, struct{}{})
}

func (in *processInput) checkInput() error {
	if in == nil || (in.Stdin == nil) == (in.PTY == nil) {
		return refuseWith(codeInvalid, "send stdin or pty, one of both")
	}
	return nil
}

// putInput passes input to a command of its kind, and returns when it has been taken.
func (d inputs) putInput(c *call, command keeper.Command, what launch, in *processInput) error {
	if err := in.checkInput(); err != nil {
		return err
	}
	data := in.Stdin
	switch {
	case in.PTY != nil && !what.terminal:
		return refuseWith(codePrecondition, "the process has no terminal: send stdin")
	case in.PTY != nil:
		data = in.PTY
	case what.terminal:
		return refuseWith(codePrecondition, "the process has a terminal: send pty")
	case !what.stdin:
		return refuseWith(codePrecondition, "the process was started without standard input: start it with stdin")
	}
	for chunk := range slices.Chunk([]byte(*data), channel.MaxPayload) {
		if err := d.sendFrame(c, command, channel.FrameStdin, chunk); err != nil {
			return err
		}
	}
	return nil
}

// closeStdin tells a command that no more input comes.
func (d *Data) closeStdin(w http.ResponseWriter, c *call) error {
	var req selected
	if err := readUnary(w, c, &req); err != nil {
		return err
	}
	command, what, err := d.findCommand(c, req.Process, false)
	if err != nil {
		return err
	}
	if what.terminal {
		return refuseWith(codePrecondition, "a terminal's input can't be closed: send Ctrl-D")
	}
	if err := d.sendFrame(c, command, channel.FrameStdin, nil); err != nil {
		return err
	}
	return writeUnary(w, c, struct{}{})
}

// signalName is a signal of the protocol: by name or by number.
type signalName string

// UnmarshalJSON reads either form.
func (s *signalName) UnmarshalJSON(data []byte) error {
	switch string(data) {
	case `"SIGNAL_SIGKILL"`, "9":
		*s = "KILL"
	case `"SIGNAL_SIGTERM"`, "15":
		*s = "TERM"
	case "null", "0", `"SIGNAL_UNSPECIFIED"`:
	default:
		return errors.New("signal must be SIGNAL_SIGTERM or SIGNAL_SIGKILL")
	}
	return nil
}

// sendSignal signals a command's process group; SIGKILL reaches what left it, too.
func (d *Data) sendSignal(w http.ResponseWriter, c *call) error {
	var req struct {
		selected
		Signal signalName `json:"signal"`
	}
	if err := readUnary(w, c, &req); err != nil {
		return err
	}
	if req.Signal == "" {
		return refuseWith(codeInvalid, "name a signal: SIGNAL_SIGTERM or SIGNAL_SIGKILL")
	}
	command, _, err := d.findCommand(c, req.Process, false)
	if err != nil {
		return err
	}
	if err := d.sendJSON(c, command, channel.FrameSignal, channel.Signal{Name: string(req.Signal), Tree: req.Signal == "KILL"}); err != nil {
		return err
	}
	return writeUnary(w, c, struct{}{})
}

// updateProcess resizes a command's terminal.
func (d *Data) updateProcess(w http.ResponseWriter, c *call) error {
	var req struct {
		selected
		PTY *terminal `json:"pty"`
	}
	if err := readUnary(w, c, &req); err != nil {
		return err
	}
	command, what, err := d.findCommand(c, req.Process, false)
	if err != nil {
		return err
	}
	if req.PTY != nil {
		if !what.terminal {
			return refuseWith(codePrecondition, "the process has no terminal to resize")
		}
		size, err := req.PTY.window()
		if err != nil {
			return err
		}
		if err := d.sendJSON(c, command, channel.FrameResize, size); err != nil {
			return err
		}
	}
	return writeUnary(w, c, struct{}{})
}

func (d *Data) sendJSON(c *call, command keeper.Command, kind channel.FrameType, v any) error {
	payload, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return d.sendFrame(c, command, kind, payload)
}

// sendFrame passes a frame to a command. One that ends meanwhile is not found.
func (d *Data) sendFrame(c *call, command keeper.Command, kind channel.FrameType, payload []byte) error {
	err := d.cfg.Sandboxes.Send(c.Context(), c.id, command.ID, kind, payload)
	if errors.Is(err, fault.ErrConflict) && heldSentence(c.box.Waits()) == "" {
		return refuseWith(codeNotFound, "the process with the pid %d has ended", command.PID)
	}
	return err
}
