package keeper

import (
	"context"
	"encoding/json"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Adopt makes a command that runs in a copied guest (Launch.Reset) known, and
// gets it a stream: its output goes on where it was when the copy was made, and
// of its exit, when that has come meanwhile, nothing is lost. Taken from c are
// ID, Argv, Started and Terminal, which are those of the source's command;
// offsets begin at 0.
//
// A command that the copy does not have, because it had ended when the copy was
// made, is a fault.ErrNotFound; one that has a stream is a fault.ErrConflict.
func (c *Client) Adopt(ctx context.Context, id string, command Command, o ExecOptions) error {
	command.Exit, command.TimeoutMS = nil, 0 // keepers of older releases refuse what they do not know
	return c.callForDone(ctx, Request{Verb: VerbAdopt, ID: id, Adopt: &command, Options: o})
}

// adoptCommand adopts a command, which is not bound to its client, as exec's is not.
func (s *sandbox) adoptCommand(ctx context.Context, copied *Command, o ExecOptions) error {
	if copied == nil || !validID(copied.ID) {
		return fault.Invalid("to adopt a command takes its id: letters, digits, dot, dash and underscore, 1 to 128 of them")
	}
	first, err := json.Marshal(channel.Call{Kind: channel.CallAdopt, Adopt: copied.ID})
	if err != nil {
		return err
	}
	o.RingBytes = s.shareOfOutput(o.RingBytes)
	c := newKeptCommand(&channel.Exec{ID: copied.ID, Argv: copied.Argv}, o, s.output)
	c.terminal, c.adopted = copied.Terminal, true
	if !copied.Started.IsZero() && copied.Started.Before(time.Now()) {
		c.started = copied.Started
	}
	return s.beginCommand(ctx, c, first)
}
