package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
)

const (
	freezeRounds = 7
	// frozenPolicy holds every package and freezes who waits.
	frozenPolicy = "name: bench-frozen\npackages:\n  default: hold\n  on_hold: freeze\n"
)

// frozenOnce are the figures of one install that was frozen in its middle.
type frozenOnce struct {
	freeze, thaw, rest time.Duration // rest: from the answer to the end of the install
	image              float64       // MB
}

// measureFreeze has pip ask for a package that waits for a person, sees the
// sandbox go to disk, answers, and waits for the end of the install.
func measureFreeze(ctx context.Context, b *bench) error {
	var freeze, thaw, rest, image sample
	n := b.rounds(freezeRounds)
	for i := range n {
		b.progress.round("freeze", i, n)
		f, err := b.freezeOnce(ctx)
		if err != nil {
			return err
		}
		freeze.add(f.freeze)
		thaw.add(f.thaw)
		rest.add(f.rest)
		image = append(image, f.image)
	}
	b.table.add(figure("freeze: a sandbox with pip in an install, to disk", unitTime, freeze))
	b.table.add(figure("  its image", unitMemory, image))
	b.table.add(figure("thaw: it runs again", unitTime, thaw))
	b.table.add(figure("  from the answer to the end of the install", unitTime, rest))
	return nil
}

func (b *bench) freezeOnce(ctx context.Context) (f frozenOnce, err error) {
	box, err := b.sandbox(ctx, frozenPolicy)
	if err != nil {
		return f, err
	}
	defer func() {
		err = errors.Join(err, b.daemon.client.DestroySandbox(context.WithoutCancel(ctx), box.ID))
	}()
	ended := make(chan error, 1)
	go func() {
		ended <- b.command(ctx, box.ID, "pip", "install", "--quiet", "--no-cache-dir", "--no-deps", "--disable-pip-version-check", b.wheels[0].project)
	}()
	request, err := b.awaitFrozen(ctx, box.ID)
	if err != nil {
		return f, err
	}
	took, bytes, err := b.recorded(ctx, box.ID, "frozen")
	if err != nil {
		return f, err
	}
	f.freeze, f.image = took, bytes/(1<<20)
	began := time.Now()
	answerID, err := lookAt(ctx, b.daemon.client, request)
	if err != nil {
		return f, err
	}
	if _, err := b.daemon.client.AnswerApprovals(ctx, api.AnswerApprovals{IDs: []string{answerID}, State: "approved", Reason: "the bench"}); err != nil {
		return f, err
	}
	if err := <-ended; err != nil {
		return f, err
	}
	f.rest = time.Since(began)
	f.thaw, _, err = b.recorded(ctx, box.ID, "thawed")
	return f, err
}

// lookAt returns a request at the revision that is there, as an answer names it.
func lookAt(ctx context.Context, c *client.Client, id string) (answerID string, err error) {
	text, err := c.Approval(ctx, id)
	if err != nil {
		return "", err
	}
	var request struct {
		AnswerID string `json:"answer_id"`
	}
	err = json.Unmarshal(text, &request)
	return request.AnswerID, err
}

// awaitFrozen returns the request for which a sandbox was frozen.
func (b *bench) awaitFrozen(ctx context.Context, sandbox string) (string, error) {
	for holds, err := range b.daemon.client.WatchHolds(ctx, sandbox) {
		if err != nil {
			return "", err
		}
		for _, h := range holds {
			if h.Frozen {
				return h.Request, nil
			}
		}
	}
	return "", fmt.Errorf("the sandbox %s was not frozen", sandbox)
}

// recorded reads how long a step took, and the image's size in bytes, from its record.
func (b *bench) recorded(ctx context.Context, sandbox, outcome string) (took time.Duration, bytes float64, err error) {
	for line, err := range b.daemon.client.Records(ctx, client.RecordFilter{Sandbox: sandbox, Kinds: []string{"sandbox"}, Outcomes: []string{outcome}}) {
		if err != nil {
			return 0, 0, err
		}
		var r struct {
			Detail map[string]string `json:"detail"`
		}
		if err := json.Unmarshal(line, &r); err != nil {
			return 0, 0, err
		}
		ms, err := strconv.ParseFloat(r.Detail["took_ms"], 64)
		if err != nil {
			return 0, 0, fmt.Errorf("the record of %s tells no time: %w", outcome, err)
		}
		bytes, _ = strconv.ParseFloat(r.Detail["image_bytes"], 64) // a thaw has none
		took = time.Duration(ms * float64(time.Millisecond))
	}
	if took == 0 {
		return 0, 0, fmt.Errorf("there is no record that the sandbox %s was %s", sandbox, outcome)
	}
	return took, bytes, nil
}
