// Package all is the list of the layouts that an inventory knows. A new one is its folder
// and one line here.
package all

import (
	"github.com/cofferdam-dev/cofferdam/internal/decide/inventory"
	"github.com/cofferdam-dev/cofferdam/internal/decide/inventory/gomodules"
	"github.com/cofferdam-dev/cofferdam/internal/decide/inventory/node"
	"github.com/cofferdam-dev/cofferdam/internal/decide/inventory/python"
)

// Layouts returns every layout.
func Layouts() []inventory.Layout {
	return []inventory.Layout{python.Layout{}, node.Layout{}, gomodules.Layout{}}
}
