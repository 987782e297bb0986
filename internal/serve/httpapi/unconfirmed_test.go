package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// TestUnconfirmedKills are told as such, with what to do, by each route that ends something. The
// control: once they are confirmed, each is done.
func TestUnconfirmedKills(t *testing.T) {
	t.Parallel()
	in, ctx := serve(t), t.Context()
	c, _ := in.as(token.Grant{Name: "ann"})
	box := in.create(c, api.CreateSandbox{})
	command, err := c.StartCommand(ctx, box.ID, api.StartCommand{Argv: []string{"sleep", "100"}})
	if err != nil {
		t.Fatal(err)
	}
	ways := []struct {
		name string
		end  func() error
	}{
		{"a signal", func() error { return client.SignalCommand(ctx, c, box.ID, command.ID, "KILL", true) }},
		{"a signal to its group", func() error { return client.SignalCommand(ctx, c, box.ID, command.ID, "TERM", false) }},
		{"a removal", func() error { return c.DestroySandbox(ctx, box.ID) }},
	}
	const sentence = "nobody confirmed it, and it may run on; end the sandbox"
	in.manager.Mute(fault.New(fault.ErrUnavailable, sentence))
	for _, way := range ways {
		if err := way.end(); client.StatusOf(err) != http.StatusServiceUnavailable || !strings.Contains(err.Error(), sentence) {
			t.Errorf("%s: %v", way.name, err)
		}
	}
	if _, err := c.Sandbox(ctx, box.ID); err != nil {
		t.Errorf("what may run on is not there any more: %v", err)
	}
	in.manager.Mute(nil)
	for _, way := range ways {
		if err := way.end(); err != nil && client.StatusOf(err) != http.StatusConflict { // TERM of what KILL has ended
			t.Errorf("%s: %v", way.name, err)
		}
	}
}
