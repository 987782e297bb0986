//go:build long

package gvisor_test

import (
	"github.com/cofferdam-dev/cofferdam/internal/engine"
	"github.com/cofferdam-dev/cofferdam/internal/engine/enginetest"
)

func forms() []form {
	return []form{{engine.RootImage, enginetest.Suite}, {engine.RootDir, enginetest.Suite}}
}

const asNobody = true
