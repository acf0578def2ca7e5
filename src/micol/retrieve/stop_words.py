"""English words that say nothing about a topic; BM25 can leave them out."""

WORDS = """
a about above after again against all almost also although always among an and another any are as at
be because become been before being below between both but by
can cannot could
did do does doing done due during
each either else even ever every
few for from further
had has have having he her here hers herself him himself his how however
i if in into is it its itself
just
least less
many may me might more most much must my myself
neither never no nor not now
of off often on once one only or other others our ours ourselves out over own
per perhaps
quite
rather
same several shall she should since so some such
than that the their theirs them themselves then there therefore these they this those though through
throughout thus to too toward towards
under until up upon us
very via
was we were what when where whereas whether which while who whom whose why will with within without would
yet you your yours yourself yourselves
"""
ENGLISH = frozenset(WORDS.split())
