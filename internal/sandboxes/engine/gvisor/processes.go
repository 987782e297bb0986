package gvisor

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/cofferdam-dev/cofferdam/internal/kit/process"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/hostproc"
)

// trackProcesses hands the sentry and the gofer to the keeper.
func (e *Engine) trackProcesses(ctx context.Context, id string) error {
	processes, err := e.processes(id)
	if err != nil {
		return err
	}
	return e.keeper.Track(ctx, id, processes)
}

// processes reads the sentry's and the gofer's numbers from runsc's record, and
// looks who has them. One that is over comes without a start.
func (e *Engine) processes(id string) ([]process.ID, error) {
	data, err := os.ReadFile(e.recordPath(id) + ".state")
	if err != nil {
		return nil, fmt.Errorf("runsc left no record of sandbox %s: %w", id, err)
	}
	var record struct {
		Sandbox struct {
			Pid int `json:"pid"`
		} `json:"sandbox"`
		Gofer int `json:"goferPid"`
	}
	if err := json.Unmarshal(data, &record); err != nil {
		return nil, fmt.Errorf("runsc's record of sandbox %s: %w", id, err)
	}
	if !process.Ordinary(record.Sandbox.Pid) || !process.Ordinary(record.Gofer) {
		return nil, fmt.Errorf("runsc's record of sandbox %s names no processes", id)
	}
	return []process.ID{e.findProcess(record.Sandbox.Pid, id), e.findProcess(record.Gofer, id)}, nil
}

// findProcess finds the process that has a number, if it is runsc's for this sandbox.
func (e *Engine) findProcess(pid int, id string) process.ID {
	now, err := process.Of(pid)
	if err != nil || !e.strays(id).Serves(now) || !now.Is() {
		return process.ID{Pid: pid}
	}
	return now
}

// strays are runsc's processes for a sandbox.
func (e *Engine) strays(id string) hostproc.Strays {
	return hostproc.Strays{Dir: e.instanceDir(id), Runs: func(pid int) bool {
		return hostproc.Runs(pid, e.cfg.Runsc) || hostproc.RunsStage(pid, e.cfg.Stage)
	}}
}
