package templatebuild

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

// Values of variables and directories of a recipe may name variables, as $NAME or
// ${NAME}: they have the values that a command in the place of the step would see. Nothing
// else of a shell's is done: a dollar that begins no name is one, and so is a command in
// brackets.

// maxVariables bounds what is read of a sandbox's environment.
const maxVariables = 1 << 20

// referring finds the names in a value.
var referring = regexp.MustCompile(`\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)\})`)

// expand puts the values in the place of the names; a variable that is not there is
// empty.
func expand(value string, variables map[string]string) string {
	return referring.ReplaceAllStringFunc(value, func(found string) string {
		return variables[strings.Trim(found, "${}")]
	})
}

// expanded is a step with the values of the variables that it names.
func (j *job) expanded(ctx context.Context, number string, s Step, now setting) (Step, error) {
	values := func(i int) bool { return s.Type == kindWorkdir || s.Type == kindEnv && i%2 == 1 }
	refers := false
	for i, arg := range s.Args {
		refers = refers || values(i) && referring.MatchString(arg)
	}
	if !refers {
		return s, nil
	}
	variables, err := j.variables(ctx, number, now)
	if err != nil {
		return s, err
	}
	args := make([]string, len(s.Args))
	for i, arg := range s.Args {
		if args[i] = arg; values(i) {
			args[i] = expand(arg, variables)
		}
	}
	s.Args = args
	return s, checkText(args...)
}

// variables are those of a command in a setting. They are not in the log: a template's
// users may have what its makers have not, and the other way.
func (j *job) variables(ctx context.Context, number string, now setting) (map[string]string, error) {
	c := j.shellCommand(now, "env -0")
	c.CapBytes = maxVariables
	text, err := j.askCommand(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("the variables of step %s: %w", number, err)
	}
	variables := map[string]string{}
	for line := range strings.SplitSeq(text, "\x00") {
		if name, value, ok := strings.Cut(line, "="); ok {
			variables[name] = value
		}
	}
	return variables, nil
}

// askCommand does a command to its good end and returns what it wrote.
func (j *job) askCommand(ctx context.Context, c sandbox.Command) (string, error) {
	started, err := j.b.cfg.Sandboxes.Start(ctx, j.box, c)
	if err != nil {
		return "", err
	}
	raw, err := j.b.cfg.Sandboxes.Attach(ctx, j.box, started.ID, 0)
	if err != nil {
		return "", err
	}
	defer raw.Close()
	defer safego.When(ctx, func() { _ = raw.Close() })()
	conn := channel.NewConn(raw)
	var out bytes.Buffer
	for {
		kind, payload, err := conn.ReadFrame()
		switch {
		case ctx.Err() != nil:
			return "", context.Cause(ctx)
		case err != nil:
			return "", fault.Wrap(fault.ErrUnavailable, err, "the output of the command was cut short")
		}
		switch kind { //nolint:exhaustive // the others say nothing of it
		case channel.FrameStdout:
			out.Write(payload)
		case channel.FrameExit:
			var exit channel.Exit
			if err := json.Unmarshal(payload, &exit); err != nil {
				return "", err
			}
			if exit.Truncated {
				return "", fault.New(fault.ErrExhausted, "it wrote more than %d bytes", c.CapBytes)
			}
			return out.String(), new(process).failure(exit)
		}
	}
}
