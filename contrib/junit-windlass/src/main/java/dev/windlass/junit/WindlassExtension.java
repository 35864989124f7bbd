package dev.windlass.junit;

import java.io.IOException;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ExtensionContext.Namespace;
import org.junit.jupiter.api.extension.ExtensionContext.Store;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolutionException;
import org.junit.jupiter.api.extension.ParameterResolver;

/**
 * Supplies a {@link WindlassCluster} to parameters of constructors, tests and lifecycle methods.
 *
 * <p>All tests of a run share the control plane, which starts at its first use and stops after the last test.
 */
public final class WindlassExtension implements ParameterResolver {
    private static final Namespace NAMESPACE = Namespace.create(WindlassExtension.class);

    @Override
    public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
        return parameter.getParameter().getType() == WindlassCluster.class;
    }

    @Override
    public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
        Store store = context.getRoot().getStore(NAMESPACE);
        return store.getOrComputeIfAbsent(Shared.class, key -> Shared.start(), Shared.class).cluster();
    }

    /** A control plane that the store stops at the end of the run. Newer releases of JUnit look for AutoCloseable. */
    private record Shared(WindlassCluster cluster) implements Store.CloseableResource, AutoCloseable {
        static Shared start() {
            try {
                return new Shared(WindlassCluster.start());
            } catch (IOException error) {
                throw new ParameterResolutionException(error.getMessage(), error);
            }
        }

        @Override
        public void close() throws IOException {
            cluster.close();
        }
    }
}
