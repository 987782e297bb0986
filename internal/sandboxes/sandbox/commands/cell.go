package commands

import (
	"context"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/journal"
)

// Cell is code that a kernel is to run.
type Cell struct {
	Language string
	Code     string
}

// Cell has code judged and recorded before a kernel gets it. A refusal is fault.ErrForbidden
// with the rule's reason. Of what is allowed ended is told the end, once: it returns at once,
// and what the cell left on the disk is on record some time later, as of every command.
func (t *Table) Cell(ctx context.Context, c Cell) (id string, ended func(channel.Exit), err error) {
	if state := t.place.State(); !state.Usable() {
		return "", nil, state.Refuse(t.place.Info.ID)
	}
	cmd := &tableCommand{id: journal.NewID("cell-", 6), settled: make(chan struct{}), argv: []string{c.Language}}
	answer, err := t.cfg.Door.Cell(ctx, t.place.Info.ID, cmd.id, c.Language, c.Code)
	if err != nil {
		return "", nil, err
	}
	if !answer.Decision.Allowed() {
		return "", nil, fault.New(fault.ErrForbidden, "%s (rule %s, request %s)", answer.Decision.Reason, answer.Decision.Rule, answer.RequestID)
	}
	t.holdCommand(cmd)
	var once sync.Once
	return cmd.id, func(exit channel.Exit) {
		once.Do(func() { safego.In(t.group, func() { t.settleCommand(t.life, cmd, exit) }) })
	}, nil
}

// Limited ends with context.DeadlineExceeded when the policy's time for a command is over:
// time in which the sandbox waits for a person does not count.
func (t *Table) Limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if t.place.Limit == 0 {
		return context.WithCancel(ctx)
	}
	return t.place.Waits().WithTimeout(ctx, t.place.Limit)
}
