// The words of generated names: 128 of each kind, so that one random number selects both with masks. Every
// combination is friendly.

const split = (words: string): readonly string[] => words.trim().split(/\s+/)

export const ADJECTIVES: readonly string[] = split(`
  able airy amber ample apt aqua azure bold brave breezy bright brisk bubbly calm candid caring cheery civic
  clear clever cobalt comfy coral cosmic cosy crisp curious dainty dapper daring dear deep deft dewy eager
  early easy elegant epic even fair fancy fast festive fine fleet fluffy fond frank free fresh gentle giddy
  glad gleaming golden good grand green handy happy hardy hearty honest humble icy ideal jade jaunty jolly
  jovial joyful keen kind large lasting light lilac lively loyal lucid lucky lunar mellow merry mighty mild
  misty modest neat nimble noble novel open patient peach placid plucky polite prime proud quick quiet rapid
  rare ready regal rosy royal rustic scenic serene shiny silent silver sleek smart smooth snowy snug solar
  steady sunny swift tidy true upbeat vivid
`)

export const NOUNS: readonly string[] = split(`
  acorn alder almond alpaca anchor apple apricot aspen aster badger bamboo basil bay beacon bear beaver bee
  birch bison breeze bridge brook canary canyon cedar cherry cliff cloud clover comet condor cove crane
  creek cricket cypress daisy dawn deer delta dolphin dove dune eagle egret elk elm ember falcon fern finch
  fjord forest fox garden gecko geyser glacier grove gull harbor hare hawk hazel heron hill hippo ibex ibis
  iris island ivy jaguar jasmine juniper kestrel kiwi koala lagoon lake lark leaf lemur lily llama lotus
  lynx magpie mango maple marsh meadow mesa mint moon moose moss nectar newt oak oasis ocean olive orchid
  oriole osprey otter owl panda pebble pelican penguin pine plum pond poppy prairie puffin quail rabbit rain
  raven reef river robin rose rowan sage
`)
