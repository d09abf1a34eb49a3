package tracecli

import (
	"testing"

	"github.com/fit-eval/fit/internal/testenv"
)

func TestDownloadsOfAnOrdinaryUser(t *testing.T) {
	testenv.AsOrdinaryUser(t, []string{"TestADownloadFollowsNoPlantedLink"})
}
