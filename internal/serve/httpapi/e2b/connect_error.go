package e2b

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// code is a Connect error code.
type code string

// The codes that are sent.
const (
	codeCanceled        code = "canceled"
	codeInvalid         code = "invalid_argument"
	codeDeadline        code = "deadline_exceeded"
	codeNotFound        code = "not_found"
	codeExists          code = "already_exists"
	codePermission      code = "permission_denied"
	codeExhausted       code = "resource_exhausted"
	codePrecondition    code = "failed_precondition"
	codeUnimplemented   code = "unimplemented"
	codeInternal        code = "internal"
	codeUnavailable     code = "unavailable"
	codeDataLoss        code = "data_loss"
	codeUnauthenticated code = "unauthenticated"
)

// status is the HTTP status of a unary call's error.
func (c code) status() int {
	switch c {
	case codeCanceled:
		return 499
	case codeInvalid, codePrecondition:
		return http.StatusBadRequest
	case codeDeadline:
		return http.StatusGatewayTimeout
	case codeNotFound:
		return http.StatusNotFound
	case codeExists:
		return http.StatusConflict
	case codePermission:
		return http.StatusForbidden
	case codeExhausted:
		return http.StatusTooManyRequests
	case codeUnimplemented:
		return http.StatusNotImplemented
	case codeUnavailable:
		return http.StatusServiceUnavailable
	case codeUnauthenticated:
		return http.StatusUnauthorized
	case codeInternal, codeDataLoss:
		return http.StatusInternalServerError
	}
	return http.StatusInternalServerError
}

// failure is an error as the protocol writes it.
type failure struct {
	Code    code   `json:"code"`
	Message string `json:"message"`
}

// Error is the sentence.
func (f *failure) Error() string { return f.Message }

// refuseWith makes a failure with a sentence of ours.
func refuseWith(c code, format string, args ...any) error {
	return &failure{Code: c, Message: fmt.Sprintf(format, args...)}
}

// failureOf is how any error is told to a client. Words that are not ours to tell stay inside.
func failureOf(err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		return &failure{Code: code(fault.KindOf(f).Code), Message: f.Sentence}
	}
	switch {
	case errors.Is(err, context.Canceled):
		return &failure{Code: codeCanceled, Message: "the request was cancelled"}
	case errors.Is(err, context.DeadlineExceeded):
		return &failure{Code: codeDeadline, Message: "the request took longer than it may"}
	}
	return &failure{Code: codeInternal, Message: "something inside failed; the daemon's log has it"}
}
