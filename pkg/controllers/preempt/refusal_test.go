package preempt

import (
	"fmt"
	"io"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// What is refused for good is told apart from what may work in a moment.
func TestRefusal(t *testing.T) {
	for err, want := range map[error]bool{
		tooMany():                             true,
		apierrors.NewBadRequest("no"):         true,
		apierrors.NewTooManyRequests("no", 1): false,
		apierrors.NewInternalError(io.EOF):    false,
		io.EOF:                                false,
		fmt.Errorf("create: %w", tooMany()):   true,
	} {
		if got := refusal(err); got != want {
			t.Errorf("refusal(%v) = %v, want %v", err, got, want)
		}
	}
}
