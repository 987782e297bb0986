package gvisor

import (
	"context"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/hostproc"
)

// Instance is one sandbox under gVisor. Signals reach the sentry and the gofer, and with
// them every guest process: STOP and CONT freeze and thaw, KILL ends. The sentry's exit
// code is PID 1's, and its memory is the sandbox's.
type Instance struct {
	*hostproc.Body

	engine *Engine
	id     string
	state  handleState
}

var _ engine.Instance = (*Instance)(nil)

func (e *Engine) instance(id string, st handleState) *Instance {
	return &Instance{Body: e.home.Body(id, logName, st.Grouped, st), engine: e, id: id, state: st}
}

// Destroy ends the sandbox and removes all that was made for it.
func (i *Instance) Destroy(ctx context.Context) error {
	i.Ends()
	return i.engine.destroy(ctx, i.id)
}
