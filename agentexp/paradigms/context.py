"""The hooks of paradigms under the name that plug-ins know; they live in `agentexp.hooks`, below runner and paradigms."""

from agentexp.hooks import ARTEFACTS_FILE as ARTEFACTS_FILE
from agentexp.hooks import Context as Context
from agentexp.hooks import Finalises as Finalises
from agentexp.hooks import Plans as Plans
from agentexp.hooks import Prepares as Prepares
