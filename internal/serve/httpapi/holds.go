package httpapi

import (
	"bytes"
	"encoding/json"
	"net/http"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/suspend"
)

// serveHolds answers with what a sandbox waits for: one line, or with watch another
// whenever it has changed, until the sandbox is gone. With stay as well the sandbox's lease
// goes on as long as its client watches.
func (s sandboxRoutes) serveHolds(w http.ResponseWriter, r *http.Request) error {
	sb, err := s.ownSandbox(r)
	if err != nil {
		return err
	}
	watch := r.URL.Query().Get("watch") != ""
	if watch && r.URL.Query().Get("stay") != "" {
		defer sb.Stay()()
	}
	w.Header().Set("Content-Type", "application/jsonl")
	out := http.NewResponseController(w)
	var last []byte
	for {
		v := sb.Waits()
		line, err := json.Marshal(viewHolds(v))
		if err != nil {
			return err
		}
		if !bytes.Equal(line, last) {
			last = line
			if _, err := w.Write(append(line, '\n')); err != nil || out.Flush() != nil {
				return errAnswered // the client went away
			}
		}
		if !watch {
			return nil
		}
		select {
		case <-v.Changed:
		case <-sb.Gone():
			return nil
		case <-r.Context().Done():
			return nil
		}
	}
}

// withWaits adds to a sandbox's view what it waits for.
func withWaits(v api.Sandbox, sb *sandbox.Sandbox) api.Sandbox {
	v.Holds = viewHolds(sb.Waits())
	return v
}

func viewHolds(v suspend.View) []api.Hold {
	holds := []api.Hold{}
	for _, h := range v.Holds {
		one := api.Hold{
			Request: h.Approval, Tree: h.Tree, Package: h.Subject(),
			Reason: h.Reason, Since: h.Since, Frozen: v.State == suspend.Frozen,
		}
		if h.Freeze {
			one.Unfrozen = v.Note
		}
		holds = append(holds, one)
	}
	return holds
}
