package httpapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// signalCommand signals a command, and answers when the guest says that this is done. It is
// no part of any attachment, whose connection may be full of input.
func (s commandRoutes) signalCommand(w http.ResponseWriter, r *http.Request) error {
	var body api.SignalCommand
	if err := readJSON(r, &body); err != nil {
		return err
	}
	name := strings.TrimPrefix(body.Name, "SIG")
	if unix.SignalNum("SIG"+name) == 0 {
		return fault.Invalid("%.40q is no signal's name, such as TERM or KILL", body.Name)
	}
	if _, err := s.ownAwake(r); err != nil {
		return err
	}
	payload, err := json.Marshal(channel.Signal{Name: name, Tree: body.Tree})
	if err != nil {
		return err
	}
	err = s.cfg.Sandboxes.Send(r.Context(), r.PathValue("id"), r.PathValue("cmd"), channel.FrameSignal, payload)
	if name == "KILL" && errors.Is(err, fault.ErrConflict) && s.hasEnded(r) {
		err = nil // there is nothing to kill
	}
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// hasEnded tells whether the command that a request is about is known to have ended.
func (s commandRoutes) hasEnded(r *http.Request) bool {
	commands, err := s.cfg.Sandboxes.Commands(r.Context(), r.PathValue("id"))
	if err != nil {
		return false
	}
	for _, c := range commands {
		if c.ID == r.PathValue("cmd") {
			return c.Exit != nil
		}
	}
	return false
}
