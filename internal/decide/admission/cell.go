package admission

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy/pycode"
)

// Cell judges code by the policy's rules before a kernel of the sandbox gets it. If it is
// allowed its `started` record is durable when Cell returns; if not, its `blocked` record is.
// CommandFinished is told its end.
func (c *Controller) Cell(ctx context.Context, sandbox, id, language, code string) (door.Answer, error) {
	t, err := c.admitTenant(ctx, sandbox)
	if err != nil {
		return door.Answer{}, err
	}
	d, err := t.judging.judgeText(ctx, t, len(code), func() policy.CommandInput { return codeInput(language, code) })
	sum := sha256.Sum256([]byte(code))
	r := audit.Record{
		Kind: audit.KindCommand, Outcome: audit.Started, User: t.run.User,
		Detail: map[string]string{
			records.DetailCommand: id, detailLanguage: language, detailCodeSize: strconv.Itoa(len(code)), detailCodeSHA256: hex.EncodeToString(sum[:]),
		},
	}
	keepCommand(&r, []string{language, code})
	if err != nil {
		return door.Answer{}, unjudged(ctx, t, r, err)
	}
	d = t.known.settleDecision(d)
	if d.Effect == policy.Hold { // rules can't say so of code
		d.Effect = policy.Deny
	}
	r.ResolvedBy, r.Rule, r.Reason = string(d.ResolvedBy), d.Rule, d.Reason
	if !d.Allowed() {
		r.Outcome = audit.Blocked
	}
	if r, err = t.book.Append(ctx, r); err != nil {
		return door.Answer{}, err
	}
	t.takeCommand(r, nil, c.config.Limits)
	if d.Allowed() {
		for _, argv := range shellLines(language, code) {
			t.takeClaims(argv, c.config.Limits)
		}
	}
	return door.Answer{Decision: d, RequestID: r.RequestID, Seq: r.Seq}, nil
}

// codeInput is what rules see of code: its text, and of Python what is found in it.
func codeInput(language, code string) policy.CommandInput {
	in := policy.CommandInput{Code: &code}
	if language == pycode.Language {
		found := pycode.Text(pycode.Scan(code))
		in.Findings = &found
	}
	return in
}

// maxShellLines bounds how many lines of a cell are looked at for installs.
const maxShellLines = 200

// shellLines are the lines of a cell that are commands, without quotes being understood: they
// only tell what a cell claims to install.
func shellLines(language, code string) [][]string {
	var all [][]string
	for line := range strings.Lines(code) {
		line = strings.TrimSpace(line)
		switch {
		case language == "bash":
		case language == pycode.Language && (strings.HasPrefix(line, "!") || strings.HasPrefix(line, "%")):
			line = strings.TrimLeft(line, "!%")
		default:
			continue
		}
		if argv := strings.Fields(line); len(argv) > 1 && len(all) < maxShellLines {
			all = append(all, argv)
		}
	}
	return all
}
