// Package all is the list of the ecosystems that this build speaks. A new one
// is its folder and one line here.
package all

import (
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/golang"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/npm"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/pypi"
)

// Protocols returns every protocol.
func Protocols() []ecosystem.Protocol {
	return []ecosystem.Protocol{
		pypi.New(),
		npm.New(),
		golang.New(),
	}
}
