package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/refusal"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

func newWhy() *cobra.Command {
	var filter client.RefusalFilter
	var asJSON, all bool
	cmd := &cobra.Command{
		Use:     "why [flags] [REQUEST|RUN|SANDBOX]",
		Short:   "Say what a run was refused, and why",
		GroupID: groupReview,
		Long: `Says which packages, names and commands a run was refused, by which rule, and which
lines of a policy would allow them. It tells what may be why something failed, and how
much else was refused; --all and --json have that, too, behind the causes.
The run may be long over; without --run, --sandbox and REQUEST it is the last one.
REQUEST is the id in a refusal ("request cvfkyk4n"), or one of the approval queue; what
is none is taken for a run, and then for a sandbox. A file that may have been tampered
with comes first, as ALARM.`,
		Example: "  cofferdam why\n  cofferdam why cvfkyk4n\n  cofferdam why nightly-42 --json",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			last := len(args) == 0 && filter == client.RefusalFilter{}
			if len(args) == 1 {
				filter.Request = args[0]
			}
			refused, err := refusalsOf(cmd, &filter)
			if err != nil {
				return err
			}
			return tellWhy(refused, last, all || filter.Request != "", asJSON)
		},
		ValidArgsFunction: completeFirst(completeRefusals(&filter)),
	}
	set := cmd.Flags()
	set.StringVar(&filter.Run, "run", "", "the run (default: the last one)")
	set.StringVar(&filter.Sandbox, "sandbox", "", "only what this sandbox was refused")
	set.BoolVar(&all, "all", false, "also what is less sure to be why something failed")
	set.BoolVar(&asJSON, "json", false, "write JSON")
	registerCompletion(cmd, "run", completeRuns)
	registerCompletion(cmd, "sandbox", completeSandboxes)
	return cmd
}

// refusalsOf asks for what was refused. An id under which nothing was may be that of a run or of a sandbox, if the filter
// names neither; the filter is of what was found then.
func refusalsOf(cmd *cobra.Command, filter *client.RefusalFilter) (api.Refusals, error) {
	filter.Causes = filter.Request == ""
	refused, err := askFor(cmd, (*client.Client).Refusals, *filter)
	if client.StatusOf(err) != http.StatusNotFound || filter.Request == "" || filter.Run != "" || filter.Sandbox != "" {
		return refused, err
	}
	for _, other := range []client.RefusalFilter{{Run: filter.Request, Causes: true}, {Sandbox: filter.Request, Causes: true}} {
		if refused, again := askFor(cmd, (*client.Client).Refusals, other); client.StatusOf(again) != http.StatusNotFound {
			*filter = other
			return refused, again
		}
	}
	return refused, fmt.Errorf("%w, and there is no run or sandbox of that name on record", err)
}

// tellWhy writes refusals as they are told inside, those that may be why something failed alone
// unless all are asked for; JSON has all, the causes first and marked. Which run it is about is said where nobody named one.
func tellWhy(refused api.Refusals, last, all, asJSON bool) error {
	var told []refusal.Refusal
	for _, r := range refused.Refusals {
		if all || asJSON || r.Cause { // a program reads of each whether it is a cause
			told = append(told, refusalOf(r))
		}
	}
	if asJSON {
		text, err := refusal.JSON(told)
		if err == nil {
			_, err = fmt.Print(text)
		}
		return err
	}
	if last {
		fmt.Fprintf(os.Stderr, "cofferdam: of run %s, the last one\n", ui.Printable(refused.Run))
	}
	if refused.Ended != "" && len(told) > 0 {
		fmt.Fprintf(os.Stderr, "cofferdam: %s\n", ui.Printable(refused.Ended))
	}
	text := refusal.Text(told)
	if rest := len(refused.Refusals) - len(told); rest > 0 {
		if len(told) == 0 {
			text = "Nothing was refused in this run that anything is known to have missed.\n"
		}
		text += fmt.Sprintf("Refused beside that, and less sure to be why something failed: %d; cofferdam why --run %s --all\n", rest, ui.Quoted(refused.Run))
	}
	if slices.ContainsFunc(told, func(r refusal.Refusal) bool { return policy.AreEntries(r.Suggest) }) {
		text += fmt.Sprintf("An entry lets in that package, and not yet what it requires; one that is tried, with all of that: cofferdam policy suggest --run %s (where the run installed what a project names, with --mount .:/workspace -- INSTALL behind it)\n", ui.Quoted(refused.Run))
	}
	_, err := fmt.Print(ui.PrintableText(text))
	return err
}

// completeRefusals offers the ids of what was refused in the run that the flags name.
func completeRefusals(filter *client.RefusalFilter) completion {
	return completeFound(func(ctx context.Context, c *client.Client) []string {
		refused, _ := c.Refusals(ctx, *filter) // none, if none can be asked
		var found []string
		for _, r := range refused.Refusals {
			found = append(found, r.RequestID+"\t"+ui.Printable(refusal.Subject(refusalOf(r))))
		}
		return found
	})
}

// refusalOf makes of the wire's refusal the one that has words.
func refusalOf(r api.Refusal) refusal.Refusal {
	return refusal.Refusal{
		Time: r.Time, Run: r.Run, Sandbox: r.Sandbox,
		Package: pkgref.Ref{Ecosystem: pkgref.Ecosystem(r.Package.Ecosystem), Name: r.Package.Name, Version: r.Package.Version},
		File:    r.File, What: r.What, Name: r.Name, Outcome: r.Outcome, Rule: r.Rule, Reason: r.Reason, Suggest: r.Suggest,
		RequestID: r.RequestID, Count: r.Count, Alarm: r.Alarm, Approval: r.Approval, Cause: r.Cause,
	}
}
