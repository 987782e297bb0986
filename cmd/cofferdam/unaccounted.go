package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// endedByPolicy replaces a command's end by the sandbox's, where the policy
// ended that for what the command left on the disk.
func (r *runner) endedByPolicy(ctx context.Context, exit *api.Exit, err error) error {
	if exit == nil {
		return err
	}
	// The summary waits until what is installed is on record; it is the run's,
	// which may have had other sandboxes.
	summary, failure := r.summary(ctx)
	if failure == nil {
		r.summed = &summary // nothing is added to it before it is told
	}
	if failure != nil || summary.Ended == "" {
		return err
	}
	why := r.endingRecord(ctx)
	if why == "" {
		return err
	}
	return &exitError{code: exitUnaccounted, err: fmt.Errorf(
		"the policy ended the run (packages.unaccounted: end): %s; the command itself had ended with %d", ui.Printable(why), exit.Code)}
}

// endingRecord is why the policy ended this sandbox, as the log says; "": it did
// not.
func (r *runner) endingRecord(ctx context.Context) string {
	filter := client.RecordFilter{
		Run: r.box.Run, Sandbox: r.box.ID, Outcomes: []string{string(audit.Alarm), string(audit.Exceeded)},
	}
	for line, err := range r.client.Records(ctx, filter) {
		var record audit.Record
		if err == nil && json.Unmarshal(line, &record) == nil && record.Detail["ends"] != "" {
			return record.Reason
		}
	}
	return ""
}
