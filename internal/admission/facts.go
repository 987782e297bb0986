package admission

import (
	"context"

	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// facts are what policy weighs of a file.
func (f File) facts() policy.FileFacts {
	facts := policy.FileFacts{File: f.Name, Version: f.Version, Kind: f.Kind, Published: f.Published, FirstSeen: f.FirstSeen, Scripts: f.Scripts}
	if f.Digest != "" {
		facts.Digests = []string{f.Digest}
	}
	return facts
}

// Owner implements Door.
func (c *Controller) Owner(ctx context.Context, ask OwnerAsk) (OwnerAnswer, error) {
	if _, err := c.admit(ctx, ask.Sandbox); err != nil {
		return OwnerAnswer{}, err
	}
	return OwnerAnswer{}, nil
}
