package admission

import (
	"context"

	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
)

// EdgesOfIndex implements Door.
func (c *Controller) EdgesOfIndex(ctx context.Context, sandbox string, _ pkgref.Ref, _ string, _ []IndexRequirement) error {
	_, err := c.admit(ctx, sandbox)
	return err
}
