package tokentest_test

import (
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token/tokentest"
)

func TestMemory(t *testing.T) {
	tokentest.TestStore(t, func(*testing.T) (token.Store, func() token.Store) { return tokentest.NewMemory(), nil })
}
