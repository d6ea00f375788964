package spec

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/sweepfile/argv"
	"github.com/berthml/berth/internal/sweepfile/spec/document"
)

var stageName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)

// stagePath is where commands find the output of a stage.
var stagePath = regexp.MustCompile(`/trial/stages/([a-z0-9][a-z0-9-]*)(?:$|[/\s"'])`)

// byHand is what scripts call a run without stages, as docs/stages.md shows.
const byHand = "all"

const stageHint = "such as {name: features, parameters: [base]}, which runs the sweep's command, or {name: features, command: [python3, features.py]}"

func (o *object) stages() []berth.Stage {
	var out []berth.Stage

	o.each("stages", func(n *document.Node, pointer string) {
		s := o.open(n, pointer)
		stage := berth.Stage{Name: s.text("name"), Command: s.texts("command"), Image: s.text("image"), Parameters: append([]string{}, s.texts("parameters")...)}

		if s.field("resources") != nil {
			resources := s.resources()
			stage.Resources = &resources
		}

		if s.field("parameters") == nil {
			stage.Parameters = append(stage.Parameters, argv.Names(stage.Command)...)
		}

		if s.field("parameters") == nil && s.field("command") == nil && n.Kind == document.Object {
			s.add(n.Offset, pointer, codeStage, "say what the stage runs, or which parameters it reads: %s", stageHint)
		}

		out = append(out, stage)
		s.finish()
	})

	return out
}

func (c *checker) checkStages() {
	stages := c.spec.Stages

	if len(stages) > berth.MaxStages {
		c.add("/stages", codeTooMany, "there are %d stages; a sweep has at most %d", len(stages), berth.MaxStages)

		return
	}

	c.checkStagePaths("/command", c.spec.Command, stages)

	for i, stage := range stages {
		at := "/stages/" + strconv.Itoa(i)

		switch {
		case !stageName.MatchString(stage.Name):
			c.add(at+"/name", codeStage, "a stage's name has 1 to %d of a-z, 0-9 and -, and does not begin with -, such as features", berth.MaxStageName)
		case stage.Name == berth.StageMain:
			c.add(at+"/name", codeStage, "%s is the sweep's own command, which runs after all stages; choose another name", berth.StageMain)
		case stage.Name == byHand:
			c.add(at+"/name", codeStage, "scripts read %s as a run without stages (docs/stages.md); choose another name", byHand)
		case slices.ContainsFunc(stages[:i], func(other berth.Stage) bool { return other.Name == stage.Name }):
			c.add(at+"/name", codeStage, "%q is a stage already; choose another name", stage.Name)
		}

		if stage.Image != "" {
			c.checkImage(at+"/image", stage.Image)
		}

		c.checkStageCommand(at, stage)
		c.checkStagePaths(at+"/command", stage.Command, stages[:i])

		if stage.Resources != nil {
			c.checkResourcesAt(at+"/resources", *stage.Resources)
		}

		if stage.Resources != nil && stage.Resources.GPUMemorySpill {
			c.add(at+"/resources/gpu_memory_spill", codeUnsupported, "a stage does not run in unified memory; leave it out")
		}
	}
}

// checkStagePaths looks for paths to outputs of stages that do not run before the command.
func (c *checker) checkStagePaths(at string, command []string, earlier []berth.Stage) {
	var names []string
	for _, stage := range earlier {
		names = append(names, stage.Name)
	}

	for i, element := range command {
		for _, path := range stagePath.FindAllStringSubmatch(element, -1) {
			if !slices.Contains(names, path[1]) {
				c.add(at+"/"+strconv.Itoa(i), codeStage, "no stage %q runs before this command%s", path[1], didYouMean(path[1], names))
			}
		}
	}
}

// checkStageCommand checks the command and the parameters of a stage.
func (c *checker) checkStageCommand(at string, stage berth.Stage) {
	if !c.reader.clean("/parameters") {
		return
	}

	parameters := c.byName()

	for i, name := range stage.Parameters {
		switch _, declared := parameters[name]; {
		case !declared && len(stage.Command) == 0 || !declared && !slices.Contains(argv.Names(stage.Command), name):
			c.add(at+"/parameters/"+strconv.Itoa(i), codeStage, noParameter, shorten(name), c.suggestName(name))
		case slices.Contains(stage.Parameters[:i], name):
			c.add(at+"/parameters/"+strconv.Itoa(i), codeStage, "%q is here twice; keep one", name)
		}
	}

	for _, name := range argv.Names(stage.Command) {
		if !slices.Contains(stage.Parameters, name) {
			c.add(at+"/parameters", codeStage, "the stage's command reads %q: add it here, or leave parameters out", name)
		}
	}

	if len(stage.Command) > 0 {
		c.checkArguments(at+"/command", stage.Command)

		return
	}

	unread := func(part argv.Part) bool { return part.Name != "" && !slices.Contains(stage.Parameters, part.Name) }

	for i, element := range c.spec.Command {
		parts, _ := argv.Parse(element)

		switch at, j := at+"/parameters", slices.IndexFunc(parts, unread); {
		case i == 0 && j >= 0:
			c.add(at, codeCond, "the stage does not read %q, and would have no program; name the program without it", parts[j].Name)
		case j == 0:
			name := parts[0].Name
			c.add(at, codeCond, "the stage does not read %q, and runs command without element %d, which alone is left out; "+
				"write --%s={{%s}} there, so that its option goes with it", name, i, name, name)
		}
	}
}

// stageWarnings names stages that share nothing.
func stageWarnings(s berth.Spec) (out []berth.Problem) {
	for i, stage := range s.Stages {
		var ranges, searched []string

		all := true

		for _, p := range s.Parameters {
			if !p.Searched() {
				continue
			}

			read := slices.Contains(stage.Parameters, p.Name)
			all = all && read

			if read {
				searched = append(searched, p.Name)
			}

			if read && p.Type == berth.ParameterFloat && len(p.Values) == 0 {
				ranges = append(ranges, p.Name)
			}
		}

		at := "/stages/" + strconv.Itoa(i)

		switch {
		case len(ranges) > 0:
			out = append(out, problem(CodeStageShares, at, "the stage %s reads %s, of which hardly two trials have the same value: it runs for each trial, and nothing is shared",
				stage.Name, strings.Join(ranges, ", ")))
		case all && len(searched) > 0:
			out = append(out, problem(CodeStageShares, at, "the stage %s reads every searched parameter: it runs for each trial, and nothing is shared", stage.Name))
		}
	}

	if len(s.Stages) > 0 && s.Network {
		out = append(out, problem(CodeStageShares, "/network", "a stage with a network may load anything: trials share its output within this sweep only"))
	}

	return out
}
