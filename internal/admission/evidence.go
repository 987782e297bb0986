package admission

import (
	"context"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/approval"
)

// file puts a wish into the queue, with what the imported lists say of it for
// the person who answers.
func (c *Controller) file(ctx context.Context, w approval.Ask) (approval.Request, error) {
	if c.config.Advisories == nil {
		return c.config.Approvals.Ask(ctx, w)
	}
	project := w.Package
	project.Version = ""
	facts, err := c.config.Advisories.Facts(project)
	if err != nil {
		return approval.Request{}, errUnknown(project, err)
	}
	if facts.Popular {
		w.Evidence.Popularity = "it is on an imported list of popular packages"
	}
	if near := facts.Lookalike; near != nil {
		w.Evidence.Similar = near.Name + ": " + near.How
	}
	for _, m := range facts.Malware {
		if text := m.ID + " is about other releases of it"; !slices.Contains(w.Evidence.Advisories, text) {
			w.Evidence.Advisories = append(w.Evidence.Advisories, text)
		}
	}
	return c.config.Approvals.Ask(ctx, w)
}
